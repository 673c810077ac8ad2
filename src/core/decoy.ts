import { closedAbove } from './tree.ts'

/** A random prefix that clients cannot guess. Short, since sources take longer over longer names. */
let unguessable: string | undefined

function makeUnguessable(): string {
  // Through the global object: loading node:crypto takes several milliseconds of the start.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return random.toString(36).padStart(7, 'z').slice(-5)
}

/**
 * Returns a path that does not exist, to request from a source in place of a denied one: the answer then costs as much as that
 * for a missing path, no matter what the denied path holds, and nothing of it is touched.
 *
 * The first closed directory (nothing below it may be seen) gets a name that cannot be guessed; without a closed directory, the
 * last segment does. So a path in a directory that may be read is missing from that directory. The same path always has the same
 * decoy, so a source that caches results caches both alike. The extension stays, since sources judge names by it.
 *
 * @param isClosed Whether the principal may see nothing below a directory, which ends in `/`.
 */
export function decoyOf(path: string, isClosed: (directory: string) => boolean): string {
  const segments = path.split('/')
  const last = path.endsWith('/') ? segments.length - 2 : segments.length - 1
  const closed = closedAbove(path.replace(/\/$/, ''), isClosed)
  const at = closed === undefined ? last : closed.split('/').length - 2
  const name = segments[at] ?? ''
  const ending = at === last && !path.endsWith('/') ? (/(?<=.)\.\w{1,10}$/.exec(name)?.[0] ?? '') : ''
  unguessable ??= makeUnguessable()
  segments[at] = `${unguessable}${hashOf(name)}`.padEnd(name.length - ending.length, '0') + ending
  return segments.join('/')
}

/** FNV-1a, in three characters. It only keeps names apart; the random prefix keeps the name unguessable. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (((hash >>> 15) ^ hash) & 0x7fff).toString(32).padStart(3, '0')
}
