/** Paths inside a mount: decoded, relative, `/` between segments. A path that ends in `/` is a directory; the empty path is the root of the mount. */

/** Orders two paths by the bytes of their UTF-8 form. `a-b` < `a.txt` < `a/b`; U+FF61 < U+20BB7, unlike `<` on strings. */
export function comparePaths(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i)
    let y = b.charCodeAt(i)
    if (x === y) continue
    // UTF-16 puts surrogates (U+10000 and up) below U+E000 to U+FFFF; UTF-8 puts them above.
    if (x >= 0xd800 && y >= 0xd800) {
      x += x >= 0xe000 ? -0x800 : 0x2000
      y += y >= 0xe000 ? -0x800 : 0x2000
    }
    return x - y
  }
  return a.length - b.length
}

/** C0 and C1 controls, DEL, and the Unicode line and paragraph separators. */
const controls = /[^ -~\xa0-\u2027\u202a-\uffff]/

/** Why a text cannot be a segment of a path. `not-unicode`: it has a lone surrogate. */
type SegmentFault = 'empty-segment' | 'dot-segment' | 'slash' | 'control-character' | 'not-unicode'

export function segmentFault(segment: string): SegmentFault | undefined {
  if (segment === '') return 'empty-segment'
  if (segment === '.' || segment === '..') return 'dot-segment'
  if (segment.includes('/')) return 'slash'
  if (controls.test(segment)) return 'control-character'
  if (!segment.isWellFormed()) return 'not-unicode'
  return undefined
}

/** Whether a path can be passed to a provider: valid segments, with or without a final `/`; or empty. */
export function isPath(path: string): boolean {
  if (path === '') return true
  const body = path.endsWith('/') ? path.slice(0, -1) : path
  return body.split('/').every((segment) => segmentFault(segment) === undefined)
}

/**
 * Returns one text for all spellings of a path that are canonically equivalent (Unicode, UAX #15). macOS writes `が` in
 * names as two code points, keyboards as one.
 */
export function canonicalPath(path: string): string {
  return path.normalize('NFC')
}

export function mayHaveOtherSpellings(path: string): boolean {
  return /[^ -~]/.test(path)
}

/** Returns the last segment, without a final `/`. `''` for the root. */
export function baseName(path: string): string {
  const body = path.endsWith('/') ? path.slice(0, -1) : path
  return body.slice(body.lastIndexOf('/') + 1)
}

/** Returns the directory that contains a path, with its `/`: `a/b/c` and `a/b/c/` are in `a/b/`. `''` for the root. */
export function parentOf(path: string): string {
  const body = path.endsWith('/') ? path.slice(0, -1) : path
  return body.slice(0, body.lastIndexOf('/') + 1)
}

/**
 * Returns a key that resumes a listing after everything in a directory: it sorts after every path under `directory` (which ends
 * in `/`) that does not itself begin with two U+10FFFF, and before everything that follows the directory.
 */
export function afterSubtree(directory: string): string {
  return `${directory}\u{10ffff}\u{10ffff}`
}

/** Returns `after` relative to a prefix, to resume the listing below the prefix; `''` if nothing there comes before `after`, undefined if all does. */
export function resumeKeyIn(prefix: string, after: string | undefined): string | undefined {
  if (after === undefined) return ''
  if (after.startsWith(prefix)) return after.slice(prefix.length)
  return comparePaths(after, prefix) < 0 ? '' : undefined
}
