//! The screen at the usual sizes, as a user sees it.

use super::*;

#[test]
fn the_screen_at_the_usual_sizes() {
    insta::assert_snapshot!(shown(&mut at_work(), 40, 20), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    ● read_file src/parse.rs — 575 lines
    ○ execute_command cargo test
        running 3 tests
        test a ... ok


    ◠ Executing execute_command
      (esc to interrupt) · cargo test
     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the… (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────┐
    │ ● Regular Mode    45.0k/200.0k (23%) │
    └──────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 60, 24), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    ● read_file src/parse.rs — 575 lines
    ○ execute_command cargo test
        running 3 tests
        test a ... ok






    ◠ Executing execute_command (esc to interrupt)
      cargo test
     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────┐
    │ ● Regular Mode               Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 100, 16), @r"
    > Fix the parser                                                      │ Todos 1/3
                                                                          │ ☒ Look
    I'll look at src/parse.rs first.                                      │ ▶ Change it, now
                                                                          │ ☐ Test it
    ● read_file src/parse.rs — 575 lines                                  │
    ○ execute_command cargo test                                          │
        running 3 tests                                                   │
        test a ... ok                                                     │
                                                                          │
    ◠ Executing execute_command Still working... (esc to interrupt)
      cargo test
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────────────────────────────────────────────┐
    │ ● Regular Mode | claude-sonnet-5-5                                   Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 200, 16), @r"
    > Fix the parser                                                                                                                                                │ Todos 1/3
                                                                                                                                                                    │ ☒ Look
    I'll look at src/parse.rs first.                                                                                                                                │ ▶ Change it, now
                                                                                                                                                                    │ ☐ Test it
    ● read_file src/parse.rs — 575 lines                                                                                                                            │
    ○ execute_command cargo test                                                                                                                                    │
        running 3 tests                                                                                                                                             │
        test a ... ok                                                                                                                                               │
                                                                                                                                                                    │
    ◠ Executing execute_command Still working... (esc to interrupt)
      cargo test
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┐
    │ ● Regular Mode | claude-sonnet-5-5                                         Context: 45.0k/200.0k (23%)                                         shift+tab: cycle mode | esc×2: stop | /help: commands │
    └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
}

#[test]
fn the_screen_with_a_question_and_with_nothing() {
    let mut asked = at_work();
    asked.tell(question(), at(5000));
    insta::assert_snapshot!(shown(&mut asked, 60, 24), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    ● read_file src/parse.rs — 575 lines
    ○ execute_command cargo test
        running 3 tests
        test a ... ok


     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the tests (Up takes it back)
    ┌ execute_command ─────────────────────────────────────────┐
    │Run `rm x`?                                               │
    │rm x                                                      │
    │because it deletes                                        │
    │y yes | n no | e no, and say what instead                 │
    │Press Esc to cancel                                       │
    └──────────────────────────────────────────────────────────┘
    ┌──────────────────────────────────────────────────────────┐
    │ ● Regular Mode               Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut app(), 40, 10), @r"






    > Ask for something, or / for commands
    ┌──────────────────────────────────────┐
    │ ● Regular Mode     Context: 0/0 (0%) │
    └──────────────────────────────────────┘
    ");
}
