/** Returns the stored text of a key. A browser may store nothing (private windows). */
export function readKept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Stores a text in the browser. If the browser stores nothing, the text lives as long as the page. */
export function keep(key: string, text: string): void {
  try {
    localStorage.setItem(key, text)
  } catch {
    // It is not kept, then.
  }
}
