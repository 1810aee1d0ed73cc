//! Crashes of programs that others wrote, with the line that was at fault by their own fix.

/// A bug of a library in C that a package of the registry brings along.
pub struct Bug {
    pub name: &'static str,
    pub program: &'static str,
    pub package: &'static str,
    pub version: &'static str,
    /// Where the sources are in the package.
    pub directory: &'static str,
    /// Those that are compiled; all if none is named.
    pub sources: &'static [&'static str],
    pub flags: &'static [&'static str],
    /// The program around the library, and what it is to execute; both are in `xtask/crashes`.
    pub driver: &'static str,
    pub input: &'static str,
    pub file: &'static str,
    /// The line at fault. Code that a compiler makes of a statement belongs to its first line.
    pub faulty: u64,
    /// What some lines have to be, so that the program does not crash any more.
    pub fix: &'static [(usize, &'static str)],
}

pub const BUGS: [Bug; 5] = [
    Bug {
        name: "CVE-2019-16168",
        program: "SQLite 3.29.0",
        package: "libsqlite3-sys",
        version: "0.16.0",
        directory: "sqlite3",
        sources: &["sqlite3.c"],
        flags: &["-lpthread", "-ldl", "-lm"],
        driver: "sql.c",
        input: "row-size.sql",
        file: "sqlite3.c",
        faulty: 105936,
        fix: &[(
            105936,
            "int size = sqlite3Atoi(z+3); pIndex->szIdxRow = sqlite3LogEst(size<2 ? 2 : size);",
        )],
    },
    Bug {
        name: "CVE-2020-24370",
        program: "Lua 5.4.0",
        directory: "lua-5.4.0",
        input: "negation.lua",
        file: "ldebug.c",
        faulty: 209,
        fix: &[
            (195, "if (n >= -nextra) {"),
            (196, "*pos = ci->func - nextra - (n + 1);"),
            (209, "return findvararg(ci, n, pos);"),
        ],
        ..LUA
    },
    Bug {
        name: "CVE-2020-24369",
        program: "Lua 5.4.0",
        directory: "lua-5.4.0",
        input: "stripped.lua",
        file: "ldebug.c",
        faulty: 791,
        fix: &[(791, "if (p->lineinfo == NULL) return 0; if (p->lineinfo[oldpc] != 0)")],
        ..LUA
    },
    Bug {
        name: "CVE-2019-6706",
        program: "Lua 5.3.5",
        directory: "lua-5.3.5",
        input: "join.lua",
        file: "lapi.c",
        faulty: 1292,
        fix: &[(1292, "if (*up1 == *up2) return; luaC_upvdeccount(L, *up1);")],
        ..LUA
    },
    Bug {
        name: "CVE-2023-48183",
        program: "QuickJS 2020-11-08",
        package: "libquickjs-sys",
        version: "0.9.0",
        directory: "embed/quickjs",
        sources: &["quickjs.c", "libregexp.c", "libunicode.c", "cutils.c", "libbf.c"],
        flags: &["-D_GNU_SOURCE", "-DCONFIG_VERSION=\"\"", "-DCONFIG_BIGNUM", "-lm", "-lpthread"],
        driver: "js.c",
        input: "this.js",
        file: "quickjs.c",
        faulty: 30222,
        fix: &[(30223, "FALSE, i, vd->var_name, FALSE, vd->is_lexical,")],
    },
];

const LUA: Bug = Bug {
    name: "",
    program: "",
    package: "lua-src",
    version: "540.0.0",
    directory: "",
    sources: &[],
    flags: &["-DLUA_USE_POSIX", "-lm"],
    driver: "lua.c",
    input: "",
    file: "",
    faulty: 0,
    fix: &[],
};
