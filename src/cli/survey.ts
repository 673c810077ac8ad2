import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { isExcludedByDefault } from '../providers/files/excludes.ts'
import { createFormats } from '../providers/settings/formats.ts'
import { detectEncoding } from '../wrap/encoding/detect.ts'
import { twinsOf } from '../wrap/twins.ts'
import { defaultConfig } from './local.ts'

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
  /** What texts in another encoding than UTF-8 are written in, if there are any. */
  readonly language?: 'ja' | 'zh' | 'ko'
  /** Whether documents are there in several languages. */
  readonly twins: boolean
  readonly frontMatter: boolean
}

/** So many documents are looked into, in folders of so many levels. */
const [maxDocuments, maxLevels] = [200, 3]
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
  const paths = await documentsIn(folder)
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
  return {
    names,
    dotenv,
    ...(postgres === undefined ? {} : { postgres }),
    settings: names.some((name) => name !== defaultConfig && formatOf(name) !== undefined),
    // Where there are several, none of them helps with the others.
    ...(language === undefined || other !== undefined ? {} : { language }),
    twins: paths.some((path) => twinsOf(path, languages).some((twin) => there.has(twin.path))),
    frontMatter,
  }
}

/** The name of a variable that holds the URL of a database, `DATABASE_URL` before any other. */
function postgresIn(dotenv: Buffer): string | undefined {
  const names = Object.entries(parseEnv(dotenv.toString()))
    .filter(([name, value]) => /^[A-Z][A-Z0-9_]*$/.test(name) && /^postgres(?:ql)?:\/\//.test(value ?? ''))
    .map(([name]) => name)
  return names.find((name) => name === 'DATABASE_URL') ?? names[0]
}

/** Some documents, by their paths in the folder, those near the top first. */
async function documentsIn(folder: string): Promise<readonly string[]> {
  const found: string[] = []
  let level = ['']
  for (let depth = 0; depth < maxLevels && found.length < maxDocuments; depth++) {
    const below: string[] = []
    for (const directory of level) {
      const entries = await readdir(join(folder, directory), { withFileTypes: true }).catch(() => [])
      for (const entry of entries) {
        const path = `${directory}${entry.name}`
        if (entry.isDirectory() && !entry.name.startsWith('.') && !isExcludedByDefault(`${path}/`))
          below.push(`${path}/`)
        else if (entry.isFile() && documents.test(entry.name) && found.length < maxDocuments) found.push(path)
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
