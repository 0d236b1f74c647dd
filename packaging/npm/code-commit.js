#!/usr/bin/env node
// Starts the program for this system, passes signals on, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { constants } = require("node:os");
const { join } = require("node:path");
const { isatty } = require("node:tty");

const system = `${process.platform}-${process.arch}`;
const program = join(__dirname, "programs", system, "code-commit");
if (!existsSync(program)) {
  console.error(`error: this package has no program for \`${system}\`\nhint: build it from source, with \`cargo install\``);
  process.exit(3);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal has sent these two to the program as well, which would end at once for a second one.
  const isSent = isatty(0) && signal !== "SIGTERM";
  process.on(signal, () => isSent || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: \`${program}\` cannot be started: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
