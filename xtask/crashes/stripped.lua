local whole = load("local a = 1\nlocal b = a + 1\nreturn b")
local stripped = load(string.dump(whole, true))
debug.sethook(function() end, "l")
print(stripped())
