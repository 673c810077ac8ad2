/**
 * Redirects the console to a stream, because a line of a library would break the protocol on stdout. Returns a function that restores the
 * console, unless a library has replaced it meanwhile.
 */
export function sendConsoleTo(stream: () => typeof process.stderr): () => void {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'console')
  // Define the property as Node does, so that a library can replace it.
  const set = (value: Console) =>
    Object.defineProperty(globalThis, 'console', { value, configurable: true, writable: true })
  let own: Console | undefined
  const get = () => {
    const { Console } = process.getBuiltinModule('node:console')
    own = new Console(stream(), stream())
    set(own)
    return own
  }
  Object.defineProperty(globalThis, 'console', { get, set, configurable: true })
  return () => {
    const now = Object.getOwnPropertyDescriptor(globalThis, 'console')
    const isOurs = now?.get === get || (own !== undefined && now?.value === own)
    if (before !== undefined && isOurs) Object.defineProperty(globalThis, 'console', before)
  }
}
