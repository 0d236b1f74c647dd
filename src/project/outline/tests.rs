//! Tables of texts with the signatures expected of them in every language, and tests of how outlines are shortened.

use super::*;

/// A text and the signatures expected of it.
type Case = (&'static str, &'static str, &'static [&'static str]);

fn told(path: &str, text: &str) -> Vec<String> {
    let signatures = signatures(path, text).into_iter();
    signatures.map(|signature| signature.text).collect()
}

fn assert_signatures(cases: &[Case]) {
    for (path, text, expected) in cases {
        assert_eq!(told(path, text), *expected, "{path}:\n{text}");
    }
}

#[test]
fn rust() {
    assert_signatures(&[
        (
            "a.rs",
            "pub fn a(x: u8) -> u8 { x }\nfn b() {}\npub(crate) struct C<'a>(&'a str);\npub async unsafe fn d(\n    x: u8,\n    y: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n}\n",
            &[
                "pub fn a(x: u8) -> u8",
                "pub(crate) struct C<'a>(&'a str)",
                "pub async unsafe fn d(x: u8, y: u8) -> u8",
            ],
        ),
        (
            "a.rs",
            "pub trait T {}\nimpl T for U {\n    fn x() {}\n}\npub trait V {\n    type W;\n    fn x(&self) {\n        fn y() {}\n    }\n}\nimpl V for U {\n    fn x(&self) {}\n    pub const N: u8 = 1;\n}\n",
            &[
                "pub trait T",
                "pub trait V",
                "type W",
                "fn x(&self)",
                "pub const N: u8 = 1",
            ],
        ),
        (
            "a.rs",
            "pub use a::{\n    B, C,\n};\nmacro_rules! m {\n}\n#[cfg(test)]\nmod tests {\n    pub fn helper() {}\n}\n",
            &["pub use a::{ B, C}", "macro_rules! m"],
        ),
    ]);
}

#[test]
fn python() {
    assert_signatures(&[(
        "a.py",
        r#"
MAX: int = 3
lower = 4
@decorated(1)
class A(Generic[T]):
    """
    class of something
    """
    @property
    def name(self) -> str:
        def inner(): ...
        class Local: ...
    def __init__(
        self,
        a: int = 1,  # why
    ) -> None:
        pass
    def __eq__(self, other): ...
    def _private(self):
        def inner(): ...
    async def wait(self): return 1
class _B:
    def hidden(self): ...
if TYPE_CHECKING:
    def conditional(): ...
"#,
        &[
            "MAX: int = 3",
            "class A(Generic[T])",
            "def name(self) -> str",
            "def __init__(self, a: int = 1,  # why) -> None",
            "async def wait(self): return 1",
            "def conditional(): ...",
        ],
    )]);
}

#[test]
fn javascript_and_typescript() {
    assert_signatures(&[
        (
            "a.mjs",
            r"
import x from 'x';
export default function (a, { b }) {
  function local() {}
}
export const f = async (a) => { return a; };
const g = (a,
  b) => {
  call(a);
};
const value = call(1);
export default class extends A {
  static #secret = 1;
  #hidden() {
    call(1);
  }
  constructor(a) {
    super(a);
    if (a) {
      call(a);
    }
  }
  get size() { return 1; }
  async *items() {}
  arrow = (a) => a;
}
class B {
}
app.use = function use(fn) {
};
exports.one = 1;
module.exports = {
  f,
  g,
};
export {
  h as i,
} from './h.js';
",
            &[
                "export default function (a, { b })",
                "export const f = async (a) =>",
                "const g = (a, b) =>",
                "export default class extends A",
                "constructor(a)",
                "get size()",
                "async *items()",
                "arrow = (a) => a",
                "class B",
                "app.use = function use(fn)",
                "exports.one = 1",
                "module.exports = { f, g}",
                "export { h as i} from './h.js'",
            ],
        ),
        (
            "a.ts",
            r"
export abstract class A<T extends object> implements B {
  private hidden(): void {
  }
  readonly x = 1;
  protected abstract other(): void;
  public async get<K extends keyof T>(key: K): Promise<T[K]> {
    return this.x;
  }
}
export interface Options {
  name: string;
}
export type Handler = (a: string) => void;
enum Color { Red }
declare global {
}
export const enum Kind {
",
            &[
                "export abstract class A<T extends object> implements B",
                "public async get<K extends keyof T>(key: K): Promise<T[K]>",
                "export interface Options",
                "export type Handler = (a: string) => void",
                "enum Color",
                "export const enum Kind",
            ],
        ),
    ]);
}

#[test]
fn go() {
    assert_signatures(&[(
        "a.go",
        r"
func Open[T any](name string) (*File, error) {
	Call(name)
}
func (f *File) Close() error { return nil }
func (f *File) hidden() {
	Call(1)
}
type Reader interface {
	Read(p []byte) (n int, err error)
	hidden()
}
type File struct {
	Name string
}
type (
	Mode uint8
	private struct {
		Field int
	}
)
const (
	ModeA Mode = iota
	ModeB
	modeC
)
var Err = errors.New(``)
func main() {
	Call()
",
        &[
            "func Open[T any](name string) (*File, error)",
            "func (f *File) Close() error",
            "type Reader interface",
            "Read(p []byte) (n int, err error)",
            "type File struct",
            "Mode uint8",
            "ModeA Mode = iota",
            "ModeB",
            "var Err = errors.New(``)",
        ],
    )]);
}

#[test]
fn java_and_csharp() {
    assert_signatures(&[
        (
            "A.java",
            r"
@Deprecated
public final class A<T extends B<T>> extends C {
  private static class Secret {
    public void hidden() {}
  }
  public static final int MAX = 3;
  private int x;
  @Override public String toString() {
    Foo foo = bar(1);
  }
  protected <R> R map(
      Function<T, R> f) throws IOException {
  }
  void packagePrivate() {}
  interface Inner {
    int size(String s);
    default boolean isEmpty() { return true; }
  }
}
enum E { X, Y }
public @interface Marker {
}
",
            &[
                "public final class A<T extends B<T>> extends C",
                "public static final int MAX = 3",
                "@Override public String toString()",
                "protected <R> R map(Function<T, R> f) throws IOException",
                "interface Inner",
                "int size(String s)",
                "default boolean isEmpty()",
                "enum E",
                "public @interface Marker",
            ],
        ),
        (
            "A.cs",
            r"
namespace N
{
    [Serializable]
    public sealed partial class A<T> : B where T : new()
    {
        private int x;
        private class Secret
        {
            public int Hidden;
        }
        public string Name { get; set; }
        public int Length => 1;
        public static async Task<T> RunAsync(
            string name,
            int count)
        {
            Call(name);
        }
        internal delegate void Done();
    }
    interface I
    {
        Task<int> Count(string s);
        string Name { get; }
    }
    public record struct Point(int X, int Y);
}
",
            &[
                "public sealed partial class A<T> : B where T : new()",
                "public string Name",
                "public int Length => 1",
                "public static async Task<T> RunAsync(string name, int count)",
                "internal delegate void Done()",
                "interface I",
                "Task<int> Count(string s)",
                "string Name",
                "public record struct Point(int X, int Y)",
            ],
        ),
    ]);
}

#[test]
fn c_and_cpp() {
    assert_signatures(&[
        (
            "a.c",
            r#"
#define LOCAL 1
static int hidden(void) {
    return call(1);
}
int declared(int x);
int
old_style(int x)
{
    if (x) {
    }
}
struct node *next(struct node *n,
                  int depth) {
    call(n);
}
extern "C" int exported(void) {
}
"#,
            &[
                "old_style(int x)",
                "struct node *next(struct node *n, int depth)",
                r#"extern "C" int exported(void)"#,
            ],
        ),
        (
            "a.h",
            r"
#ifndef A_H
#define A_H
#define MAX 3
#if X
  #define MIN(a, b) \
    ((a) < (b) ? (a) : (b))
#endif
typedef struct point { int x; } point;
typedef void (*callback)(int);
extern int count;
enum color {
    RED
};
static inline int twice(int x) { return 2 * x; }
char *strip(const char *s);
namespace a {
template <typename T,
          typename U = decltype(call(1))>
class Box : public Base<T> {
  int hidden_;
  void hidden();
 public:
  explicit Box(T value);
  ~Box();
  bool operator==(const Box& other) const;
  template <class V> V as() const {
    return call(1);
  }
private:
  void secret();
};
struct Open : Box<int> {
  void run();
};
using Boxes = std::vector<Box<int>>;
template <typename T> auto make(T t) -> Box<T>;
}
",
            &[
                "#define MAX 3",
                "#define MIN(a, b)",
                "typedef struct point { int x; } point",
                "typedef void (*callback)(int)",
                "extern int count",
                "enum color",
                "static inline int twice(int x)",
                "char *strip(const char *s)",
                "class Box : public Base<T>",
                "explicit Box(T value)",
                "~Box()",
                "bool operator==(const Box& other) const",
                "template <class V> V as() const",
                "struct Open : Box<int>",
                "void run()",
                "using Boxes = std::vector<Box<int>>",
                "template <typename T> auto make(T t) -> Box<T>",
            ],
        ),
    ]);
}

#[test]
fn ruby_php_and_bash() {
    assert_signatures(&[
        (
            "a.rb",
            r"
module A
  VERSION = '1'
  class B < Struct.new(:x); end
  class C
    attr_reader :name
    def self.open(path, &block)
      def inner; end
    end
    def empty? = true
    class << self
      def build(x)
      end
      private
      def hidden; end
    end
    private
    def secret
    end
    public
    def shown(a,
              b)
    end
    private def one; end
  end
end
def top
end
",
            &[
                "module A",
                "VERSION = '1'",
                "class B < Struct.new(:x); end",
                "class C",
                "attr_reader :name",
                "def self.open(path, &block)",
                "def empty? = true",
                "def build(x)",
                "def shown(a, b)",
                "def top",
            ],
        ),
        (
            "a.php",
            r"<?php
namespace A;
abstract class B extends C implements D
{
    const MAX = 3;
    private const MIN = 1;
    private $x;
    public function __construct(private int $a) {
        $f = function ($b) {};
    }
    private function hidden() {
    }
    protected static function &make(): static {
    }
}
interface I {
    public function run(): void;
}
function top(array $a = []) {
}
",
            &[
                "abstract class B extends C implements D",
                "const MAX = 3",
                "public function __construct(private int $a)",
                "protected static function &make(): static",
                "interface I",
                "public function run(): void",
                "function top(array $a = [])",
            ],
        ),
        (
            "bin/run",
            "#!/usr/bin/env bash\nexport PATH=/bin\nfunction a-b {\n  local f=$(call)\n}\nc::d() {\n  if x; then\n:\nfi\n}\nlist=()\n",
            &["export PATH=/bin", "function a-b", "c::d()"],
        ),
    ]);
}

#[test]
fn modules_aliases_and_values_are_names_too() {
    assert_signatures(&[
        (
            "a.rs",
            "pub mod a;\nmod b;\npub(crate) mod c {\n    pub fn d() {}\n    fn hidden() {}\n}\npub use a::B as C;\npub type D = u8;\n",
            &[
                "pub mod a",
                "pub(crate) mod c",
                "pub fn d()",
                "pub use a::B as C",
                "pub type D = u8",
            ],
        ),
        (
            "a.py",
            "limit: int = 3\n_hidden: int = 4\ncount = 5\ntype Pair = tuple[int, int]\n",
            &["limit: int = 3", "type Pair = tuple[int, int]"],
        ),
        (
            "a.ts",
            "export const a = 1;\nexport default a;\nexport { b, c as d };\nexport type E = string;\nexport namespace N {\n  export const f = 1;\n  const hidden = 1;\n}\n",
            &[
                "export const a = 1",
                "export default a",
                "export { b, c as d }",
                "export type E = string",
                "export namespace N",
                "export const f = 1",
            ],
        ),
        (
            "a.go",
            "type A = B\ntype (\n\tC = D\n\te = D\n)\n",
            &["type A = B", "C = D"],
        ),
        (
            "a.cs",
            "global using A = System.B;\nusing System;\npublic class C\n{\n    public const int D = 1;\n}\n",
            &[
                "global using A = System.B",
                "public class C",
                "public const int D = 1",
            ],
        ),
        (
            "a.php",
            "<?php\nclass A {\n    public string $b = '';\n    public static ?A $c;\n    protected readonly int $d;\n    private int $e;\n    private readonly int $f;\n    final public const G = 1;\n    function h() {\n        static $i = 1;\n    }\n}\n",
            &[
                "class A",
                "public string $b = ''",
                "public static ?A $c",
                "protected readonly int $d",
                "final public const G = 1",
                "function h()",
            ],
        ),
        (
            "a.hpp",
            r#"
namespace a {
  enum class E : char { X, Y }; // A comment.
  constexpr int LIMIT = 3;
  int run(int x);
  template <typename T> using Boxes = std::vector<T>;
}
inline constexpr bool is_fast{true};
extern "C" {
  int exported(void);
}
A_EXPORT template <typename T> class Box {
  typedef T Hidden;
  static constexpr int hidden = 1;
 public:
  typedef T Item;
  static constexpr int size = 1;
};
"#,
            &[
                "enum class E : char",
                "constexpr int LIMIT = 3",
                "int run(int x)",
                "template <typename T> using Boxes = std::vector<T>",
                "inline constexpr bool is_fast{true}",
                "int exported(void)",
                "A_EXPORT template <typename T> class Box",
                "typedef T Item",
                "static constexpr int size = 1",
            ],
        ),
        (
            "a.cpp",
            "namespace a {\n  enum E { X };\n  int run(int x) {\n    call(x);\n  }\n  class Local {\n    void hidden() {}\n  };\n}\nnamespace {\n  int hidden() {\n  }\n}\n",
            &["enum E", "int run(int x)", "class Local"],
        ),
    ]);
}

#[test]
fn other_files_have_no_signatures() {
    let long = format!("pub fn a() {{}} {}\n", " ".repeat(LONGEST_LINE));
    for (path, text) in [
        ("a.txt", "pub fn a()\n"),
        ("rs", "pub fn a()\n"),
        ("run", "#!/usr/bin/other\nf() {\n"),
        ("a.rs", &long),
        ("a.rs", ""),
    ] {
        assert_eq!(told(path, text), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_long_signature_is_cut() {
    let text = format!("pub fn a({}) {{\n", "ä: B, ".repeat(40));
    let cut = &told("a.rs", &text)[0];
    assert_eq!(
        (cut.chars().count(), cut.ends_with('…')),
        (LONGEST + 1, true),
        "{cut}"
    );
}

#[test]
fn a_file_that_is_mostly_signatures_is_outlined_by_its_names() {
    for (text, expected) in [
        ("pub(crate) fn a(x: u8) -> u8", "a"),
        ("export const f = (a) =>", "const f"),
        ("func (f *File) Close() error", "Close"),
        (
            "public static void Debug<T0, T1>(string a, T0 b = 1)",
            "Debug<T0, T1>",
        ),
        ("public int Length => call(1)", "int Length"),
        ("const char *strip(const char *s)", "strip"),
        (
            "typedef void (*callback)(int)",
            "typedef void (*callback)(int)",
        ),
        (
            "type Builder func(*Item) bool",
            "type Builder func(*Item) bool",
        ),
        ("explicit operator bool() const", "bool"),
        ("void a::b::run(int x)", "a::b::run"),
        ("class A : public B", "class A : public B"),
        ("#define MAX(a, b) 1", "MAX"),
        (
            "template <typename T, typename U = V<int>> struct is<const T> : std::true_type",
            "struct is<const T> : std::true_type",
        ),
        ("public", "public"),
    ] {
        assert_eq!(brief(text), expected, "{text}");
    }
    let text = "public void A(int x);\npublic void A(long x);\npublic void B();\n";
    assert_eq!(lines("A.java", text), "  A\n  B\n");
}

/// Counts words and line ends.
fn measure(text: &str) -> u64 {
    text.split_inclusive(['\n', ' ']).count() as u64
}

#[test]
fn files_are_grouped_by_directory_and_the_first_ranks_are_signed() {
    let body = "// A comment.\n".repeat(30);
    let text = |signatures: &str| format!("{signatures}{body}");
    let texts = [
        "pub fn b();\npub fn c();\n",
        "pub fn a();\n",
        "pub struct A;\n",
    ]
    .map(text);
    let files = [
        ("src/b.rs", &*texts[0]),
        ("src/deep/a.rs", &*texts[1]),
        ("run", "no signatures\n"),
        ("src/a.rs", &*texts[2]),
        ("--- x ---", ""),
    ];
    let told = |limit| {
        let outline = outline(&files, &measure, limit);
        assert!(measure(&outline) <= limit, "{limit}: {outline}");
        outline
    };
    let all = "./\n --- x ---\n run\nsrc/\n a.rs\n  pub struct A\n b.rs\n  pub fn b()\n  pub fn c()\n\
        src/deep/\n a.rs\n  pub fn a()\n";
    assert_eq!(told(1000), all);
    let some = "src/\n b.rs\nsrc/deep/\n a.rs\nand 3 more files in 2 folders\n";
    assert_eq!(told(14), some);
    assert_eq!(told(6), "");
    assert_eq!(told(0), "");
    for limit in 0..100 {
        told(limit);
    }
}

#[test]
fn every_file_is_listed_before_the_rest_goes_to_signatures() {
    let text = format!("pub fn a();\npub fn b();\n{}", "// A comment.\n".repeat(30));
    let names: Vec<String> = (0..20).map(|at| format!("{at}.rs")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*text)).collect();
    let outline = outline(&files, &measure, 72);
    let lines: Vec<&str> = outline.lines().collect();
    assert!(
        names
            .iter()
            .all(|name| lines.contains(&&*format!(" {name}"))),
        "{outline}"
    );
    assert_eq!(
        outline.matches("  pub fn a()\n  pub fn b()\n").count(),
        2,
        "{outline}"
    );
}

#[test]
fn no_line_looks_like_the_header_of_a_file() {
    let files = [("--- a ---", ""), ("--- b ---/--- c ---", "")];
    let text = outline(&files, &measure, 100);
    assert_eq!(text, "--- b ---/\n --- c ---\n./\n --- a ---\n");
}

#[test]
fn a_huge_file_takes_linear_time() {
    for line in [
        "pub fn a(",
        "class A {",
        "\tB (",
        "(((((",
        "int a b c d e f g ",
    ] {
        for line in [
            line.repeat((1 << 20) / line.len()),
            format!("{line}\n").repeat(20_000),
        ] {
            for extension in [
                "rs", "py", "ts", "go", "java", "c", "h", "rb", "cs", "php", "sh",
            ] {
                signatures(&format!("a.{extension}"), &line);
            }
        }
    }
}
