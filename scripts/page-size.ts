/**
 * `npm run size`, after `npm run build`: prints the compressed sizes of the explorer's files. It fails if the first load exceeds
 * {@link mostAtFirst}.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** Maximum number of bytes that a browser loads before it draws the page, compressed with gzip. */
export const mostAtFirst = 100_000

export interface PageSize {
  readonly name: string
  readonly bytes: number
  readonly gzip: number
  /** Whether the browser loads the file before it draws the page, or only on demand. */
  readonly first: boolean
}

/** Returns the sizes of the files of a built page. Files that index.html names, and their static imports, are loaded first. */
export function pageSizes(folder: string): readonly PageSize[] {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  const first = new Set(['index.html'])
  const follow = (name: string): void => {
    first.add(name)
    if (!/\.m?js$/.test(name)) return
    const text = readFileSync(join(folder, name), 'utf8')
    for (const [, imported = ''] of text.matchAll(/\b(?:import|from)\s*["']\.\/([\w.-]+)["']/g)) {
      const next = `assets/${imported}`
      if (!first.has(next)) follow(next)
    }
  }
  const index = readFileSync(join(folder, 'index.html'), 'utf8')
  for (const [, name = ''] of index.matchAll(/(?:src|href)="\.\/([^"]+)"/g)) follow(name)
  return names
    .map((name) => {
      const bytes = readFileSync(join(folder, name))
      return { name, bytes: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, first: first.has(name) }
    })
    .sort((a, b) => Number(b.first) - Number(a.first) || b.gzip - a.gzip)
}

/** Returns the number of bytes that a browser loads before it draws the page, compressed with gzip. */
export function firstLoad(sizes: readonly PageSize[]): number {
  return sizes.reduce((sum, { first, gzip }) => sum + (first ? gzip : 0), 0)
}

export const builtPage = fileURLToPath(new URL('../dist/explorer/page', import.meta.url))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sizes = pageSizes(builtPage)
  const shown = sizes.filter(({ first, gzip }) => first || gzip > 2000)
  for (const { name, bytes, gzip, first } of shown)
    console.log(`${first ? 'first' : 'later'}  ${kilobytes(gzip)}  ${kilobytes(bytes)}  ${name}`)
  const rest = sizes.filter((size) => !shown.includes(size))
  const sum = rest.reduce((total, { gzip }) => total + gzip, 0)
  if (rest.length > 0) console.log(`later  ${kilobytes(sum)}             ${rest.length} small files`)
  const total = firstLoad(sizes)
  console.log(`\nThe first load is ${kilobytes(total).trim()} as gzip, of ${kilobytes(mostAtFirst).trim()}.`)
  if (total > mostAtFirst) process.exitCode = 1
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1).padStart(8)} kB`
}
