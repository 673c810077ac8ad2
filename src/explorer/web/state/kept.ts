/** Returns what the browser keeps under a key. A browser may keep nothing (private windows). */
export function readKept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Keeps a text in the browser. A browser that keeps nothing has it for as long as the page. */
export function keep(key: string, text: string): void {
  try {
    localStorage.setItem(key, text)
  } catch {
    // It is not kept, then.
  }
}
