//! The channel for messages from the engine to the screen.
//!
//! Guarantees that sending never blocks, that messages arrive in order, and that a slow screen costs no more memory
//! than the text it has not shown yet: streamed text is merged into the last waiting message. Only the end of a
//! command's output is kept, since the screen shows only its last lines.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::ToScreen;
use crate::record::event::Event;
use crate::sys::environment::Clock;
use crate::sys::interrupt::is_readable_within;

/// The time that the engine has to finish.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Creates a connected sender and receiver.
///
/// # Errors
/// Fails if the socket pair cannot be created.
pub fn channel() -> io::Result<(ScreenSender, ScreenReceiver)> {
    let (listening, poking) = UnixStream::pair()?;
    let queue = Queue::default();
    let wake = Wake(Arc::new(poking));
    let sender = ScreenSender {
        queue: Arc::clone(&queue),
        wake: wake.clone(),
    };
    let receiver = ScreenReceiver {
        queue,
        listening,
        wake,
    };
    Ok((sender, receiver))
}

/// A handle that wakes the screen to check for updates. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Wake(Arc<UnixStream>);

impl Wake {
    /// Wakes the screen.
    pub fn wake(&self) {
        // A full socket wakes the screen anyway; a closed one has no screen to wake. Rust's runtime ignores SIGPIPE.
        let _ = send(&*self.0, b"x", SendFlags::DONTWAIT);
    }
}

/// The waiting messages.
type Queue = Arc<Mutex<Vec<ToScreen>>>;

/// The engine's end of the channel. When it is dropped, the screen closes.
#[derive(Debug)]
pub struct ScreenSender {
    queue: Queue,
    wake: Wake,
}

impl Drop for ScreenSender {
    fn drop(&mut self) {
        // A screen that is ending ignores this message.
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(ToScreen::End(String::new()));
        self.wake.wake();
    }
}

impl ScreenSender {
    /// Sends a message without blocking. After the screen has closed, the message is dropped.
    pub fn send(&self, message: ToScreen) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = queue.is_empty();
        let left = match queue.last_mut() {
            Some(last) => join(last, message),
            None => Some(message),
        };
        queue.extend(left);
        drop(queue);
        if is_first {
            self.wake.wake();
        }
    }
}

/// Merges `message` into the last waiting one, or returns it.
fn join(last: &mut ToScreen, mut message: ToScreen) -> Option<ToScreen> {
    match (&mut *last, &mut message) {
        (
            ToScreen::Event(Event::Receiving {
                piece, is_thought, ..
            }),
            ToScreen::Event(Event::Receiving {
                piece: more,
                is_thought: of_thought,
                ..
            }),
        ) if is_thought == of_thought => {
            piece.push_str(more);
            std::mem::swap(piece, more);
        }
        // Each message contains the end of the whole output so far.
        (ToScreen::Event(Event::Printed(_)), ToScreen::Event(Event::Printed(_)))
        | (ToScreen::Status(_), ToScreen::Status(_))
        | (ToScreen::Todos(_), ToScreen::Todos(_)) => {}
        _ => return Some(message),
    }
    *last = message;
    None
}

/// The screen's end of the channel.
#[derive(Debug)]
pub struct ScreenReceiver {
    queue: Queue,
    /// Readable when there is something to receive.
    listening: UnixStream,
    wake: Wake,
}

impl ScreenReceiver {
    /// Takes all waiting messages, in order; `None` if there are none and the screen was not woken.
    pub fn take(&self) -> Option<Vec<ToScreen>> {
        let mut bytes = [0u8; 64];
        let mut is_woken = false;
        // Drain the socket first: later messages write another byte.
        while let Ok((1.., _)) = recv(&self.listening, &mut bytes, RecvFlags::DONTWAIT) {
            is_woken = true;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *queue);
        (is_woken || !all.is_empty()).then_some(all)
    }

    /// Returns a handle that wakes the screen without a message.
    pub fn wake(&self) -> Wake {
        self.wake.clone()
    }

    /// Waits for the farewell of an engine that is ending; empty if that takes too long.
    pub fn farewell(&self, clock: &dyn Clock) -> String {
        let from = clock.elapsed();
        loop {
            let mut messages = self.take().into_iter().flatten();
            let farewell = messages.find_map(|message| match message {
                ToScreen::End(farewell) => Some(farewell),
                _ => None,
            });
            let left = LAST_WORDS.checked_sub(clock.elapsed().saturating_sub(from));
            match (farewell, left) {
                (Some(farewell), _) => return farewell,
                (None, None) => return String::new(),
                (None, Some(left)) => {
                    let _ = is_readable_within(self.listening.as_fd(), left);
                }
            }
        }
    }
}

impl AsFd for ScreenReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listening.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::price::Usd;
    use proptest::prelude::*;

    fn received(piece: &str, is_thought: bool) -> ToScreen {
        ToScreen::Event(Event::Receiving {
            piece: piece.to_owned(),
            is_thought,
            output_tokens: 1,
            thought_tokens: 0,
            spent: Usd::ZERO,
        })
    }

    fn told(messages: &[ToScreen]) -> Vec<(char, String)> {
        let mut all: Vec<(char, String)> = Vec::new();
        for message in messages {
            let (kind, text) = match message {
                ToScreen::Event(Event::Receiving {
                    piece,
                    is_thought: false,
                    ..
                }) => ('a', piece),
                ToScreen::Event(Event::Receiving { piece, .. }) => ('t', piece),
                ToScreen::Event(Event::Printed(text)) => ('p', text),
                ToScreen::Said(text) => ('s', text),
                other => panic!("{other:?}"),
            };
            match all.last_mut() {
                Some((last, before)) if *last == kind && kind == 'p' => before.clone_from(text),
                Some((last, before)) if *last == kind && kind != 's' => before.push_str(text),
                _ => all.push((kind, text.clone())),
            }
        }
        all
    }

    proptest! {
        #[test]
        fn no_text_is_lost_or_moved_however_slow_the_screen_is(
            messages in prop::collection::vec((0..4u8, "[a-zä\n]{0,5}", any::<bool>()), 0..40)
        ) {
            let (sender, receiver) = channel().unwrap();
            let mut sent = Vec::new();
            let mut seen = Vec::new();
            for (kind, text, takes) in messages {
                let message = match kind {
                    0 => received(&text, false),
                    1 => received(&text, true),
                    2 => ToScreen::Event(Event::Printed(text)),
                    _ => ToScreen::Said(text),
                };
                sender.send(message.clone());
                sent.push(message);
                if takes {
                    seen.extend(receiver.take().unwrap_or_default());
                }
            }
            seen.extend(receiver.take().unwrap_or_default());
            prop_assert_eq!(told(&seen), told(&sent));
            prop_assert_eq!(receiver.take(), None);
        }
    }

    #[test]
    fn queued_stream_events_are_merged_and_output_is_cut_to_its_end() {
        let (sender, receiver) = channel().unwrap();
        for _ in 0..10_000 {
            sender.send(received("ab", false));
        }
        assert_eq!(receiver.take().unwrap().len(), 1);
        for text in ["1\n", "1\n2\n"] {
            sender.send(ToScreen::Event(Event::Printed(text.to_owned())));
        }
        let printed = ToScreen::Event(Event::Printed("1\n2\n".to_owned()));
        assert_eq!(receiver.take().unwrap(), [printed]);
    }

    #[test]
    fn a_wait_ends_with_a_message_and_with_a_poke() {
        let (sender, receiver) = channel().unwrap();
        let is_woken = || is_readable_within(receiver.as_fd(), Duration::ZERO);
        assert!(!is_woken());
        sender.send(ToScreen::Settled);
        sender.send(ToScreen::Settled);
        assert!(is_woken());
        assert_eq!(receiver.take().unwrap().len(), 2);
        assert!(!is_woken());
        receiver.wake().wake();
        assert!(is_woken());
        assert_eq!(receiver.take(), Some(Vec::new()));
        assert!(!is_woken());
        drop(sender);
        assert!(matches!(receiver.take().unwrap()[..], [ToScreen::End(_)]));
        let (sender, receiver) = channel().unwrap();
        drop(receiver);
        sender.send(ToScreen::Settled);
    }
}
