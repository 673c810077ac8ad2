import { directoryMimeType, type Resource } from '../../../core/view.ts'
import { nameKey } from './order.ts'

/** Beyond so many entries a folder keeps the order of the server: with each page that comes, all of them would be ordered anew. */
export const maxOrdered = 2000

/** The entries of a folder as people look for them: folders first, then by name, with numbers as numbers and without regard to case. */
export function natural(entries: readonly Resource[]): readonly Resource[] {
  if (entries.length > maxOrdered) return entries
  return entries
    .map((entry) => ({ entry, rank: isFolder(entry) ? 0 : 1, key: nameKey(entry.name) }))
    .sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ entry }) => entry)
}

const isFolder = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType || uri.endsWith('/')
