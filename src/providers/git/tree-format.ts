import { isUtf8 } from 'node:buffer'
import { comparePaths, segmentFault } from '../../core/path.ts'
import type { Tree, TreeEntry, TreeKind } from './trees.ts'

/**
 * Takes a tree object apart: `mode name NUL id`, again and again.
 *
 * Trees come from strangers, so their order is not trusted, and some names are left out: those that no path can hold
 * (`..`, with a slash, with a control character, not UTF-8), `.git` in any case, and what Windows takes for it. Of two
 * entries of one name the first is kept.
 */
export function parseTree(oid: string, bytes: Buffer, idBytes: number): Tree {
  const found: { readonly key: string; readonly entry: TreeEntry }[] = []
  let sorted = true
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const nul = bytes.indexOf(0, space)
    const end = nul + 1 + idBytes
    if (space === -1 || nul === -1 || end > bytes.length) break
    const kind = kindOf(bytes.toString('latin1', at, space))
    const name = nameIn(bytes, space + 1, nul)
    if (kind !== undefined && name !== undefined) {
      const key = kind === 'directory' ? `${name}/` : name
      const previous = found.at(-1)
      if (previous !== undefined && comparePaths(previous.key, key) >= 0) sorted = false
      found.push({ key, entry: { name, kind, oid: bytes.toString('hex', nul + 1, end) } })
    }
    at = end
  }
  if (!sorted) found.sort((a, b) => comparePaths(a.key, b.key))
  const seen = new Set<string>()
  // A file and a directory of one name are in order, and still two of one name.
  const kept = found.filter(({ entry }) => !seen.has(entry.name) && seen.add(entry.name))
  return { oid, keys: kept.map(({ key }) => key), entries: kept.map(({ entry }) => entry) }
}

function kindOf(mode: string): TreeKind | undefined {
  if (mode === '40000' || mode === '040000') return 'directory'
  if (mode === '120000') return 'link'
  if (mode === '160000') return 'submodule'
  return /^100[0-7]{3}$/.test(mode) ? 'file' : undefined
}

function nameIn(bytes: Buffer, start: number, end: number): string | undefined {
  const name = bytes.toString('utf8', start, end)
  // Only text that is not UTF-8 decodes to a replacement character, apart from text that holds one.
  if (name.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) return undefined
  if (segmentFault(name) !== undefined || /^(?:\.git|git~1)$/i.test(name)) return undefined
  return name
}
