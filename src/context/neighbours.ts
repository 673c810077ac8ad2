import { encodePath } from '../core/uri.ts'
import { folderOf } from './places.ts'

/** Patterns of references to files in code and prose: imports, includes, links. */
const references = [
  /\b(?:from|import|require\s*\(|import\s*\(|include)\s*["'<]([^"'<>\n]{1,300})["'>]/g,
  /\]\(<?([^)\s<>]{1,300})>?\)/g,
  /\b(?:href|src)\s*=\s*["']([^"'\n]{1,300})["']/g,
]
const most = { references: 200, text: 400_000, folder: 12 }
const endings = ['', '.ts', '.tsx', '.js', '.jsx', '.mjs', '.py', '.md', '/index.ts', '/index.js', '/README.md']

/** The known URIs that a text refers to, relative to its own, in the order in which they are named. */
export function referredTo(uri: string, text: string, isKnown: (uri: string) => boolean): readonly string[] {
  const found = new Set<string>()
  const part = text.slice(0, most.text)
  let looked = 0
  for (const pattern of references)
    for (const [, reference = ''] of part.matchAll(pattern)) {
      if (++looked > most.references) return [...found]
      const target = candidatesFor(uri, reference).find(isKnown)
      if (target !== undefined && target !== uri) found.add(target)
    }
  return [...found]
}

function candidatesFor(uri: string, reference: string): readonly string[] {
  const [path = ''] = reference.split(/[?#]/)
  if (path === '') return []
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return [path]
  const whole = resolved(folderOf(uri), path)
  if (whole === undefined) return []
  // An import of a `.js` file may refer to a TypeScript file.
  const bare = whole.replace(/\.[cm]?jsx?$/, '')
  return [
    ...endings.map((ending) => whole + ending),
    ...(bare === whole ? [] : ['.ts', '.tsx'].map((end) => bare + end)),
  ]
}

/** A relative path below a folder, without `.` and `..`. `undefined`: it leads out of the root. */
function resolved(folder: string, path: string): string | undefined {
  const [, root, rest] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*\/)(.*)$/i.exec(folder) ?? []
  if (root === undefined || rest === undefined || path.startsWith('/') || !path.isWellFormed()) return undefined
  const segments = rest.split('/').filter((segment) => segment !== '')
  for (const segment of path.split('/')) {
    if (segment === '..') {
      if (segments.pop() === undefined) return undefined
    } else if (segment !== '.' && segment !== '')
      segments.push(/%[0-9a-f]{2}/i.test(segment) ? segment : encodePath(segment))
  }
  return root + segments.join('/')
}

/** Those in the same folder, where there are not so many that it says nothing. */
export function foldersOf(uris: readonly string[]): (uri: string) => readonly string[] {
  const folders = new Map<string, string[]>()
  for (const uri of uris) {
    const folder = folderOf(uri)
    const held = folders.get(folder)
    if (held === undefined) folders.set(folder, [uri])
    else held.push(uri)
  }
  return (uri) => {
    const all = folders.get(folderOf(uri)) ?? []
    return all.length > most.folder ? [] : all.filter((other) => other !== uri)
  }
}
