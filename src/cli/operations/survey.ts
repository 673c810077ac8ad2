import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Survey, surveyFolder } from '../../config/survey.ts'
import { defined } from '../../core/kit/defined.ts'
import { type DescribedServer, serversIn } from './survey-servers.ts'

/** Findings of `init` in a folder. */
export interface Found extends Survey {
  /** The API that an OpenAPI file in the folder describes. */
  readonly api?: DescribedApi
  /** Servers in host files of the folder. */
  readonly servers?: readonly DescribedServer[]
}

/** Examines a folder for `init`. Rejects like `readdir` if it cannot be read. */
export async function surveyAll(folder: string): Promise<Found> {
  const survey = await surveyFolder(folder)
  const api = await apiIn(folder)
  const servers = await serversIn(folder)
  return { ...survey, ...defined({ api }), ...(servers.length === 0 ? {} : { servers }) }
}

/** An API that a folder describes: its URL, and its GET requests. */
interface DescribedApi {
  /** The description, relative to the folder. */
  readonly file: string
  readonly url: string
  /** URI templates of the GET requests. */
  readonly templates: readonly string[]
}

/** Usual places of descriptions (OpenAPI 3, as JSON). */
const files = ['openapi.json', 'docs/openapi.json', 'api/openapi.json']
const maxBytes = 4 * 2 ** 20
const maxTemplates = 8

/** The API that a folder describes, if its URL is given and at least one request needs no query. */
async function apiIn(folder: string): Promise<DescribedApi | undefined> {
  for (const file of files) {
    const found = describedBy(await jsonIn(join(folder, file)))
    if (found !== undefined) return { file, ...found }
  }
  return undefined
}

async function jsonIn(path: string): Promise<unknown> {
  try {
    const { size } = await stat(path)
    return size > maxBytes ? undefined : JSON.parse(await readFile(path, 'utf8'))
  } catch {
    return undefined
  }
}

function describedBy(description: unknown): Omit<DescribedApi, 'file'> | undefined {
  const [server] = arrayAt(description, 'servers')
  const url = at(server, 'url')
  if (typeof url !== 'string' || !/^https:\/\/[a-z0-9.-]+(?::\d+)?(?:\/[\w.~/-]*)?$/.test(url)) return undefined
  const paths = at(description, 'paths')
  const templates = Object.entries(typeof paths === 'object' && paths !== null ? paths : {})
    .filter(([path, methods]) => /^(?:\/(?:[\w.~-]+|\{\w+\}))+$/.test(path) && isPlainGet(at(methods, 'get')))
    .map(([path]) => path.slice(1))
  return templates.length === 0
    ? undefined
    : { url: url.replace(/\/$/, ''), templates: templates.slice(0, maxTemplates) }
}

/** Whether the request needs only its path. */
function isPlainGet(operation: unknown): boolean {
  if (typeof operation !== 'object' || operation === null) return false
  return arrayAt(operation, 'parameters').every((one) => at(one, 'in') === 'path' || at(one, 'required') !== true)
}

function at(value: unknown, key: string): unknown {
  const isRecord = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
  return isRecord ? (value as Readonly<Record<string, unknown>>)[key] : undefined
}

function arrayAt(value: unknown, key: string): readonly unknown[] {
  const found = at(value, key)
  return Array.isArray(found) ? found : []
}
