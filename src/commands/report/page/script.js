'use strict';
(() => {
  const MOST = 2000;
  const make = (name, className, text) =>
    Object.assign(document.createElement(name), { className, textContent: text });
  const button = (className, text, label, act) => {
    const made = make('button', className, text);
    made.type = 'button';
    made.setAttribute('aria-label', label);
    made.addEventListener('click', () => act(made));
    return made;
  };

  // Where a browser has no clipboard for pages from the disk, what is selected is copied.
  const copy = async (pre) => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(pre);
      return document.execCommand('copy');
    }
  };
  for (const pre of document.querySelectorAll('pre')) {
    const box = make('div', 'copyable', '');
    pre.replaceWith(box);
    box.append(pre, button('copy', 'Copy', 'Copy this text', async (made) => {
      made.textContent = await copy(pre) ? 'Copied' : 'Selected';
      setTimeout(() => { made.textContent = 'Copy'; }, 1500);
    }));
  }

  // The text of the page as one string, and where each of its nodes begins in it.
  const nodes = [];
  let text = '';
  const main = document.querySelector('main');
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement.closest('button')) continue;
    nodes.push([text.length, walker.currentNode]);
    text += walker.currentNode.data;
  }
  const place = (at, isEnd) => {
    let [low, high] = [0, nodes.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (nodes[middle][0] < at || (!isEnd && nodes[middle][0] === at)) low = middle;
      else high = middle - 1;
    }
    return [nodes[low][1], at - nodes[low][0]];
  };

  let found = [];
  let current = -1;
  const bar = make('div', 'search', '');
  bar.setAttribute('role', 'search');
  const input = make('input', '', '');
  input.type = 'search';
  input.placeholder = 'Search this page';
  input.setAttribute('aria-label', 'Search this page');
  const told = make('output', '', '');
  const mark = (name, ranges) => {
    if (window.Highlight && CSS.highlights) CSS.highlights.set(name, new Highlight(...ranges));
  };
  const tell = () => {
    const most = found.length === MOST ? '+' : '';
    told.textContent = input.value === '' ? '' :
      found.length === 0 ? 'nothing found' : `${current + 1} of ${found.length}${most}`;
  };
  const go = (step) => {
    if (found.length === 0) return;
    current = (current + step + found.length) % found.length;
    const range = found[current];
    const element = range.startContainer.parentElement;
    for (let above = element; above; above = above.parentElement) {
      if (above.localName === 'details') above.open = true;
    }
    mark('current', [range]);
    element.scrollIntoView({ block: 'center' });
    tell();
  };
  const search = () => {
    const wanted = input.value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    found = [];
    current = -1;
    if (wanted !== '') {
      for (const match of text.matchAll(new RegExp(wanted, 'giu'))) {
        const range = document.createRange();
        range.setStart(...place(match.index, false));
        range.setEnd(...place(match.index + match[0].length, true));
        if (found.push(range) === MOST) break;
      }
    }
    mark('found', found);
    mark('current', []);
    tell();
    go(1);
  };
  let waiting;
  input.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
  });
  bar.append(input, told, button('', '\u2191', 'The match before', () => go(-1)), button('', '\u2193', 'The next match', () => go(1)));
  main.before(bar);
})();
