import { type ParseError, parse } from 'jsonc-parser'
import { type FolderSurvey, readFileStart, surveyFolder } from '../../config/survey.ts'
import { defined, memberOf, objectOf, stringItems } from '../../core/kit/object.ts'
import { redactPhrase } from '../../secrets/find.ts'

export interface InitSurvey extends FolderSurvey {
  readonly api?: DescribedApi
  readonly servers?: readonly DescribedServer[]
}

/** Rejects like `readdir` if the folder cannot be read. */
export async function surveyForInit(folder: string): Promise<InitSurvey> {
  const survey = await surveyFolder(folder)
  const api = await apiIn(folder)
  const servers = await serversIn(folder)
  return { ...survey, ...defined({ api }), ...(servers.length === 0 ? {} : { servers }) }
}

interface DescribedApi {
  /** Relative to the folder. */
  readonly file: string
  readonly url: string
  /** URI templates of GET requests that need no parameters outside their paths. */
  readonly templates: readonly string[]
}

const openApiFiles = ['openapi.json', 'docs/openapi.json', 'api/openapi.json']
const maxOpenApiBytes = 4 * 2 ** 20
const maxTemplates = 8

async function apiIn(folder: string): Promise<DescribedApi | undefined> {
  for (const file of openApiFiles) {
    const description = describedBy(await jsonIn(folder, file, maxOpenApiBytes))
    if (description !== undefined) return { file, ...description }
  }
  return undefined
}

/** The JSON may have comments. Returns `undefined` if the file is missing, too large or malformed. */
async function jsonIn(folder: string, path: string, maxBytes: number): Promise<unknown> {
  const content = await readFileStart(folder, path, maxBytes + 1)
  if (content === undefined || content.length > maxBytes) return undefined
  const errors: ParseError[] = []
  const value: unknown = parse(content.toString('utf8'), errors, { allowTrailingComma: true })
  return errors.length === 0 ? value : undefined
}

function describedBy(description: unknown): Omit<DescribedApi, 'file'> | undefined {
  const [server] = arrayAt(description, 'servers')
  const url = memberOf(server, 'url')
  if (typeof url !== 'string' || !/^https:\/\/[a-z0-9.-]+(?::\d+)?(?:\/[\w.~/-]*)?$/.test(url)) return undefined
  const templates = Object.entries(objectOf(memberOf(description, 'paths')))
    .filter(([path, methods]) => /^(?:\/(?:[\w.~-]+|\{\w+\}))+$/.test(path) && isPlainGet(memberOf(methods, 'get')))
    .map(([path]) => path.slice(1))
  return templates.length === 0
    ? undefined
    : { url: url.replace(/\/$/, ''), templates: templates.slice(0, maxTemplates) }
}

function isPlainGet(operation: unknown): boolean {
  if (typeof operation !== 'object' || operation === null) return false
  return arrayAt(operation, 'parameters').every(
    (one) => memberOf(one, 'in') === 'path' || memberOf(one, 'required') !== true,
  )
}

function arrayAt(value: unknown, key: string): readonly unknown[] {
  const member = memberOf(value, key)
  return Array.isArray(member) ? member : []
}

/** An MCP server from a settings file of a host, as a mount that the user must enable. */
interface DescribedServer {
  readonly name: string
  readonly file: string
  readonly mount: Readonly<Record<string, unknown>>
}

const hostFiles = [
  ['.mcp.json', 'mcpServers'],
  ['.vscode/mcp.json', 'servers'],
] as const
const maxServers = 20
const maxHostFileBytes = 256 * 1024

/**
 * Finds servers in the host files of a folder. Values of their environment and headers are left out, and likely secrets
 * in arguments and URLs are redacted. Entries that start hikidashi are left out.
 */
export async function serversIn(folder: string): Promise<readonly DescribedServer[]> {
  const serversByName = new Map<string, DescribedServer>()
  for (const [file, key] of hostFiles) {
    const servers = objectOf(objectOf(await jsonIn(folder, file, maxHostFileBytes))[key])
    for (const [name, value] of Object.entries(servers)) {
      const mount = mountOf(objectOf(value))
      // A line end in the text would end the comment that contains it.
      if (mount === undefined || /[\p{Cc}\u2028\u2029]/u.test(name + JSON.stringify(mount))) continue
      if (!serversByName.has(name) && serversByName.size < maxServers) serversByName.set(name, { name, file, mount })
    }
  }
  return [...serversByName.values()]
}

function mountOf({ command, args, env, url, headers }: Readonly<Record<string, unknown>>) {
  if (typeof url === 'string' && /^https?:\/\//.test(url)) {
    const variables = Object.keys(objectOf(headers)).map((name) => [name, { env: variableOf(name) }])
    return {
      provider: 'remote',
      url: redactPhrase(url),
      ...(variables.length === 0 ? {} : { headers: Object.fromEntries(variables) }),
    }
  }
  const argList = stringItems(args)
  if (typeof command !== 'string' || /hikidashi/.test([command, ...argList].join(' '))) return undefined
  const variables = Object.keys(objectOf(env)).map((name) => [name, { env: name }])
  return {
    provider: 'remote',
    command,
    ...(argList.length === 0 ? {} : { args: argList.map(redactPhrase) }),
    ...(variables.length === 0 ? {} : { env: Object.fromEntries(variables) }),
  }
}

function variableOf(header: string): string {
  return header.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
}
