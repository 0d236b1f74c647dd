// Holds workflow and action files against GitHub's own parser: node --input-type=module - FILE... < actions.mjs
// It runs in the folder that has the parser's package, since that is where modules are looked for.
import { readFileSync } from "node:fs";
import { register } from "node:module";

// The parser's package imports JSON in a way that only newer versions of node take.
const hook = `export async function resolve(name, context, next) {
  const found = await next(name, context);
  return found.url.endsWith(".json") ? { ...found, importAttributes: { type: "json" } } : found;
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

const { validate } = await import("@actions/languageservice");
const { TextDocument } = await import("vscode-languageserver-textdocument");
const { parseDocument, visit, isScalar } = await import("yaml");

let faults = 0;
for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, "utf8");
  const fault = (line, message) => {
    faults += 1;
    console.log(`${file}:${line}: ${message}`);
  };
  const document = TextDocument.create(`file://${file}`, "yaml", 1, text);
  for (const { range, message } of await validate(document)) {
    fault(range.start.line + 1, message);
  }
  // An expression in a script would make code of data.
  visit(parseDocument(text), {
    Pair(_, { key, value }) {
      if (isScalar(key) && key.value === "run" && isScalar(value) && String(value.value).includes("${{")) {
        fault(document.positionAt(value.range[0]).line + 1, "an expression in a script");
      }
    },
  });
}
process.exit(faults === 0 ? 0 : 1);
