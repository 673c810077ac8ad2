import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { defined } from '../core/kit/object.ts'
import { openWithin } from '../core/kit/within.ts'
import { checkoutAround, isGitDirectory, isOtherCheckoutIn } from '../providers/checkout.ts'
import { isExcludedByDefault } from '../providers/files/ignores.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { translationPathsOf } from '../wrap/translations.ts'
import { type FolderSources, inspectFolder } from './folder.ts'

type SurveyedLanguage = 'ja' | 'zh' | 'ko'

export interface DocumentSurvey {
  /** Language of the texts that are not in UTF-8, or several languages; `undefined` if none was recognized. */
  readonly language?: SurveyedLanguage | SurveyedLanguage[]
  readonly translations: boolean
  readonly frontMatter: boolean
}

export interface FolderSurvey extends FolderSources, DocumentSurvey {
  /** The variable in `.env` that holds the URL of a PostgreSQL database. The URL is not stored. */
  readonly postgres?: string
  readonly sqlite: readonly string[]
}

/** Limits of the survey. The first two count results. */
const [maxDocuments, maxDatabases, maxLevels, maxFolders] = [200, 20, 3, 500]
const sampleBytes = 16 * 1024

const documents = /\.(?:md|mdx|markdown|txt|rst|adoc|org|html?|csv|tex)$/i
const languages = ['ja', 'en']

const languageOfLabel: Readonly<Record<string, SurveyedLanguage>> = {
  shift_jis: 'ja',
  'euc-jp': 'ja',
  'iso-2022-jp': 'ja',
  gb18030: 'zh',
  gbk: 'zh',
  big5: 'zh',
  'euc-kr': 'ko',
}

/** Surveys some documents of a folder, beginning with those near its top. */
export async function surveyDocuments(folder: string): Promise<DocumentSurvey> {
  const paths = await findFiles(folder, documents, maxDocuments)
  const languageSet = new Set<SurveyedLanguage>()
  let frontMatter = false
  for await (const start of severalAtATime(paths, (path) => startOf(folder, path))) {
    const label = detectEncoding(start)
    const language = label === undefined ? undefined : languageOfLabel[label]
    if (language !== undefined) languageSet.add(language)
    frontMatter ||= /^(?:\ufeff)?---\r?\n[\s\S]*?^(?:title|description|priority|audience):/m.test(start.toString())
  }
  const there = new Set(paths)
  const all = [...languageSet].sort()
  const language = all.length > 1 ? all : all[0]
  return {
    ...defined({ language }),
    translations: paths.some((path) =>
      translationPathsOf(path, languages).some((translation) => there.has(translation.path)),
    ),
    frontMatter,
  }
}

/** Rejects as `readdir` does if the folder cannot be read. */
export async function surveyFolder(folder: string): Promise<FolderSurvey> {
  const glance = await inspectFolder(folder)
  const postgres = glance.dotenv ? postgresIn(await startOf(folder, '.env')) : undefined
  return {
    ...glance,
    ...(await surveyDocuments(folder)),
    ...defined({ postgres }),
    sqlite: await findSqliteFiles(folder),
  }
}

function postgresIn(dotenv: Buffer): string | undefined {
  const names = Object.entries(parseEnv(dotenv.toString()))
    .filter(([name, value]) => /^[A-Z][A-Z0-9_]*$/.test(name) && /^postgres(?:ql)?:\/\//.test(value ?? ''))
    .map(([name]) => name)
  return names.find((name) => name === 'DATABASE_URL') ?? names[0]
}

/** Databases are recognized by their first bytes. Those of hikidashi itself are left out. */
export async function findSqliteFiles(folder: string): Promise<readonly string[]> {
  const paths: string[] = []
  for (const path of await findFiles(folder, /\.(?:db|db3|s3db|sqlite|sqlite3)$/i, maxDatabases)) {
    const start = await startOf(folder, path)
    const isDatabase = start.toString('latin1', 0, 16) === 'SQLite format 3\0'
    if (isDatabase && start.toString('latin1', 68, 72) !== 'hiki') paths.push(path)
  }
  return paths
}

async function findFiles(folder: string, pattern: RegExp, most: number): Promise<readonly string[]> {
  const paths: string[] = []
  let level: readonly string[] = ['']
  let remaining = maxFolders
  const top = await checkoutAround(folder)
  for (let depth = 0; depth < maxLevels && remaining > 0; depth++) {
    const below: string[] = []
    const batch = level.slice(0, remaining)
    remaining -= batch.length
    for await (const { directory, entries } of severalAtATime(batch, (one) => listDirectory(folder, one))) {
      const names = entries.map(({ name }) => name)
      if (isGitDirectory((name) => names.includes(name))) continue
      if (directory !== '' && names.includes('.git') && (await isOtherCheckoutIn(folder, directory, top))) continue
      for (const entry of entries) {
        const path = `${directory}${entry.name}`
        if (entry.isDirectory() && !entry.name.startsWith('.') && !isExcludedByDefault(`${path}/`))
          below.push(`${path}/`)
        else if (entry.isFile() && pattern.test(entry.name)) paths.push(path)
        if (paths.length === most) return paths
      }
    }
    level = below
  }
  return paths
}

async function listDirectory(folder: string, directory: string) {
  const entries = await openWithin(join(folder, directory), { folder, symlinks: 'deny' }, ({ at }) =>
    readdir(at, { withFileTypes: true }),
  ).catch(() => [])
  return { directory, entries }
}

const readAtATime = 16

async function* severalAtATime<T, R>(items: readonly T[], act: (item: T) => Promise<R>): AsyncGenerator<R> {
  for (let at = 0; at < items.length; at += readAtATime)
    yield* await Promise.all(items.slice(at, at + readAtATime).map(act))
}

async function startOf(folder: string, path: string): Promise<Buffer> {
  return (await readFileStart(folder, path, sampleBytes)) ?? Buffer.alloc(0)
}

/** Returns `undefined` for a file that cannot be read, is not a regular file, or is reached through a symbolic link. */
export async function readFileStart(folder: string, path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    return await openWithin(join(folder, path), { folder, symlinks: 'deny' }, async ({ at }) => {
      // Opening a FIFO would block.
      const handle = await open(at, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        const stats = await handle.stat()
        if (!stats.isFile()) return undefined
        const length = Math.min(stats.size, maxBytes)
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0)
        return buffer.subarray(0, bytesRead)
      } finally {
        await handle.close()
      }
    })
  } catch {
    return undefined
  }
}
