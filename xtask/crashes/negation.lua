local function inspect(...)
  return debug.getlocal(1, -(1 << 31))
end
print(inspect(1, 2, 3))
