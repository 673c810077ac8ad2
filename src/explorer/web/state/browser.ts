import { fileNameOf } from './session.ts'

/** Returns the text that is stored for a key. `null`: there is none, or the browser stores nothing (private windows). */
export function readStoredText(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

export function storeText(key: string, text: string): void {
  try {
    localStorage.setItem(key, text)
  } catch {
    // The browser allows no storage, or the storage is full.
  }
}

export function pushStep(fragment: string): void {
  history.pushState(null, '', fragment)
}

export function replaceStep(fragment: string): void {
  history.replaceState(null, '', fragment)
}

export function stepBack(): void {
  history.back()
}

/** Follows the history of the browser: the listener gets the current fragment now and after each step. */
export function followSteps(listener: (fragment: string) => void): void {
  const follow = () => listener(location.hash)
  addEventListener('popstate', follow)
  addEventListener('hashchange', follow)
  follow()
}

/** Returns an object URL of a content for the page. `releaseUrl` revokes it. */
export function createUrl(content: Uint8Array | string, type: string): string {
  return URL.createObjectURL(new Blob([content as BlobPart], { type }))
}

export function releaseUrl(url: string): void {
  URL.revokeObjectURL(url)
}

export const canDownload = (): boolean => true

/** Lets the browser fetch a file and save it. */
export function downloadFrom(name: string, url: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = fileNameOf(name)
  link.click()
}

/** Saves a file through the browser, never with a type that the browser could run or show. */
export function download(name: string, content: string | Uint8Array): void {
  const url = createUrl(content, 'application/octet-stream')
  downloadFrom(name, url)
  setTimeout(() => releaseUrl(url), 60_000)
}
