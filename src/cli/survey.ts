import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { isExcludedByDefault } from '../providers/files/excludes.ts'
import { createFormats } from '../providers/settings/formats.ts'
import { detectEncoding } from '../wrap/encoding/detect.ts'
import { twinsOf } from '../wrap/twins.ts'
import { defaultConfig } from './local.ts'
import { apiIn, type DescribedApi } from './survey-api.ts'
import { type DescribedServer, serversIn } from './survey-servers.ts'

/** What there is in a folder that a configuration can make something of. */
export interface Survey {
  /** The names right in the folder. */
  readonly names: readonly string[]
  /** Whether there are configuration files right in it. */
  readonly settings: boolean
  /** Whether there is a file `.env`. (A folder of that name is one of Python's environments.) */
  readonly dotenv: boolean
  /** The variable in `.env` that names a database of PostgreSQL. Its value is not kept. */
  readonly postgres?: string
  /** Files of SQLite, by their paths in the folder. */
  readonly sqlite: readonly string[]
  /** The API that a description in the folder is of. */
  readonly api?: DescribedApi
  /** What texts in another encoding than UTF-8 are written in, if there are any. */
  readonly language?: 'ja' | 'zh' | 'ko'
  /** Whether documents are there in several languages. */
  readonly twins: boolean
  readonly frontMatter: boolean
  /** Folders of prompts, as tools name them. */
  readonly prompts: readonly string[]
  /** The servers that hosts are told of in it. */
  readonly servers?: readonly DescribedServer[]
}

/** Where people and their tools keep prompts. */
const promptFolders = ['prompts', '.github/prompts', '.claude/commands']

/** So many documents are looked into, in folders of so many levels. */
const [maxDocuments, maxDatabases, maxLevels] = [200, 20, 3]
const sampleBytes = 16 * 1024

const documents = /\.(?:md|mdx|markdown|txt|rst|adoc|org|html?|csv|tex)$/i
const languages = ['ja', 'en']

const languageOfLabel: Readonly<Record<string, Survey['language']>> = {
  shift_jis: 'ja',
  'euc-jp': 'ja',
  'iso-2022-jp': 'ja',
  gb18030: 'zh',
  gbk: 'zh',
  big5: 'zh',
  'euc-kr': 'ko',
}

/** Looks at some of a folder. Throws what `readdir` does for one that cannot be read. */
export async function surveyFolder(folder: string): Promise<Survey> {
  const names = await readdir(folder)
  const formatOf = createFormats({})
  const paths = await filesIn(folder, documents, maxDocuments)
  const found = new Set<NonNullable<Survey['language']>>()
  let frontMatter = false
  for (const path of paths) {
    const start = await startOf(join(folder, path))
    const label = detectEncoding(start)
    const language = label === undefined ? undefined : languageOfLabel[label]
    if (language !== undefined) found.add(language)
    frontMatter ||= /^(?:\ufeff)?---\r?\n[\s\S]*?^(?:title|description|priority|audience):/m.test(start.toString())
  }
  const there = new Set(paths)
  const [language, other] = found
  const dotenv = await isFile(join(folder, '.env'))
  const postgres = dotenv ? postgresIn(await startOf(join(folder, '.env'))) : undefined
  const api = await apiIn(folder)
  const servers = await serversIn(folder)
  return {
    names,
    dotenv,
    ...(api === undefined ? {} : { api }),
    ...(postgres === undefined ? {} : { postgres }),
    settings: names.some((name) => name !== defaultConfig && formatOf(name) !== undefined),
    // Where there are several, none of them helps with the others.
    ...(language === undefined || other !== undefined ? {} : { language }),
    twins: paths.some((path) => twinsOf(path, languages).some((twin) => there.has(twin.path))),
    frontMatter,
    prompts: await promptsIn(folder),
    sqlite: await sqliteIn(folder),
    ...(servers.length === 0 ? {} : { servers }),
  }
}

/** The folders of prompts that hold Markdown. */
async function promptsIn(folder: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of promptFolders) {
    const names = await readdir(join(folder, name)).catch(() => [])
    if (names.some((file) => /\.md$/i.test(file) && !/^readme\.md$/i.test(file))) found.push(name)
  }
  return found
}

/** The name of a variable that holds the URL of a database, `DATABASE_URL` before any other. */
function postgresIn(dotenv: Buffer): string | undefined {
  const names = Object.entries(parseEnv(dotenv.toString()))
    .filter(([name, value]) => /^[A-Z][A-Z0-9_]*$/.test(name) && /^postgres(?:ql)?:\/\//.test(value ?? ''))
    .map(([name]) => name)
  return names.find((name) => name === 'DATABASE_URL') ?? names[0]
}

/** Databases of SQLite, told by their first bytes; those of hikidashi itself are left out. */
async function sqliteIn(folder: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const path of await filesIn(folder, /\.(?:db|db3|s3db|sqlite|sqlite3)$/i, maxDatabases)) {
    const start = await startOf(join(folder, path))
    const isDatabase = start.toString('latin1', 0, 16) === 'SQLite format 3\0'
    if (isDatabase && start.toString('latin1', 68, 72) !== 'hiki') found.push(path)
  }
  return found
}

/** Some files, by their paths in the folder, those near the top first. */
async function filesIn(folder: string, pattern: RegExp, most: number): Promise<readonly string[]> {
  const found: string[] = []
  let level = ['']
  for (let depth = 0; depth < maxLevels && found.length < most; depth++) {
    const below: string[] = []
    for (const directory of level) {
      const entries = await readdir(join(folder, directory), { withFileTypes: true }).catch(() => [])
      for (const entry of entries) {
        const path = `${directory}${entry.name}`
        if (entry.isDirectory() && !entry.name.startsWith('.') && !isExcludedByDefault(`${path}/`))
          below.push(`${path}/`)
        else if (entry.isFile() && pattern.test(entry.name) && found.length < most) found.push(path)
      }
    }
    level = below
  }
  return found
}

/** The beginning of a file; nothing of one that cannot be read. */
async function startOf(file: string): Promise<Buffer> {
  const buffer = Buffer.alloc(sampleBytes)
  try {
    const handle = await open(file)
    try {
      const { bytesRead } = await handle.read(buffer, 0, sampleBytes, 0)
      return buffer.subarray(0, bytesRead)
    } finally {
      await handle.close()
    }
  } catch {
    return Buffer.alloc(0)
  }
}

async function isFile(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined)
  return stats?.isFile() === true
}
