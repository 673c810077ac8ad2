import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { invalid, isResourceError, notFound, ResourceError, unavailable } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { type FolderBounds, LeadsOutError, openWithin } from '../../core/kit/within.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type { Content, Context, Entry, Provider } from '../../core/provider.ts'
import { redactedMark, type Scrubber } from '../../core/scrub.ts'
import { secretNameStrength } from '../../secrets/keys.ts'
import { type Redactor, sharedRedactor } from '../../secrets/redactor.ts'
import { createSeal, isSecretPath, redactedKey } from '../../wrap/redacted/cleaner.ts'
import { parseDotenv } from '../settings/lines.ts'
import { createNodeCounter, defaultSettingsLimits, isParseFault } from '../settings/tree.ts'

interface Environment {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Version that changes with the variables; undefined when changes cannot be detected. */
  readonly version?: string
}

export interface EnvOptions {
  /**
   * Globs over names whose values are shown. A name that sounds secret (`DB_PASSWORD`) must be written out: wildcards do not match it.
   * Default none.
   */
  readonly allow?: readonly string[]
  /** The variables. Default: the current ones of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** The absolute path of a dotenv file, which replaces the variables of the process. */
  readonly file?: string
  /** Limits of the path of the file, at each read. By default its symbolic links are followed. */
  readonly within?: FolderBounds
  /** Key of the hashes that serve as versions. Replicas share it. Default: a random key for each provider. */
  readonly key?: Uint8Array
  readonly scrubber?: Scrubber
  /** Redactor that scans shown values. Default: the one shared by this process. */
  readonly redactor?: Redactor
}

const wildcard = /[*?[\]{}\\]/

/**
 * Provider of environment variables, of this process or of a dotenv file: one entry per variable, whose path is its name. Values are shown
 * only if `allow` matches, and without the secrets that the detectors find in them. Another value is `[redacted]`, also an empty one.
 *
 * Names that no path can hold (with a slash or a control character) are left out, and so are names that contain a secret.
 *
 * @throws ResourceError `invalid` for a malformed glob, or one with a slash.
 */
export function env(options: EnvOptions = {}): Provider {
  const { allow = [], environment = process.env, file, within, key = randomBytes(32) } = options
  const { scrubber, redactor = sharedRedactor() } = options
  const look =
    file === undefined ? async (): Promise<Environment> => ({ variables: environment }) : createDotenvFile(file, within)
  const seal = createSeal(key, JSON.stringify(allow))
  const slashed = allow.find((pattern) => pattern.includes('/'))
  if (slashed !== undefined)
    throw invalid(
      `"allow" has the name ${JSON.stringify(slashed)}, but no variable has a slash in its name. Remove it.`,
      'configuration',
    )
  const allowedNames = new Set(allow.filter((pattern) => !wildcard.test(pattern)))
  const allowGlobs = compileGlobs(allow)
  const isShown = (name: string) =>
    allowedNames.has(name) || (secretNameStrength(name) === undefined && allowGlobs(name))
  const isServed = (name: string) => name !== '' && !name.includes('/') && isPath(name) && !isSecretPath(name)

  const entryOf = (path: string, { version }: Environment): Entry => ({
    path,
    mimeType: 'text/plain',
    ...(version === undefined ? {} : { version: seal(path, version) }),
    description: isShown(path)
      ? 'An environment variable.'
      : 'An environment variable whose value is not shown. The operator can allow it by its name.',
  })

  const valueAt = (path: string, { variables }: Environment): string => {
    const value = isServed(path) && Object.hasOwn(variables, path) ? variables[path] : undefined
    if (value === undefined) throw notFound('no such variable')
    return value
  }

  /** A value that cannot be scanned is not shown. */
  const shownOf = async (name: string, value: string, { signal }: Context): Promise<string> => {
    if (!isShown(name)) return redactedMark
    const part = await redactor.window(
      { text: value.toWellFormed(), from: 0, final: true },
      { path: 'value.txt' },
      signal,
    )
    if (typeof part === 'string') return redactedMark
    return scrubber?.scrub(part.text) ?? part.text
  }

  return {
    list: async function* ({ prefix = '', after }, { signal }) {
      const environment = await look()
      const { variables } = environment
      const names = Object.keys(variables).filter((name) => variables[name] !== undefined && isServed(name))
      for (const name of names.sort(comparePaths)) {
        signal.throwIfAborted()
        if (!name.startsWith(prefix)) continue
        if (after === undefined || comparePaths(name, after) > 0) yield entryOf(name, environment)
      }
    },
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      const environment = await look()
      valueAt(path, environment)
      return entryOf(path, environment)
    },
    read: async ({ path }, context): Promise<readonly Content[]> => {
      context.signal.throwIfAborted()
      const environment = await look()
      const text = await shownOf(path, valueAt(path, environment), context)
      const isChanged = text.includes(redactedMark)
      const version = environment.version === undefined ? {} : { version: seal(path, environment.version) }
      return [{ mimeType: 'text/plain', ...version, text, ...(isChanged ? { meta: { [redactedKey]: true } } : {}) }]
    },
    templates: async () => [
      {
        template: '{name}',
        name: 'Environment',
        title: 'An environment variable',
        description: `The value of a variable, or ${redactedMark} if it may not be shown.`,
        mimeType: 'text/plain',
      },
    ],
  }
}

const { maxBytes } = defaultSettingsLimits

/**
 * Creates a function that reads the variables of a dotenv file literally: nothing is expanded, and the last of several with the same name wins.
 * The file is read again once it has changed.
 *
 * Reads throw ResourceError `unavailable` when the path is not that of a readable regular file, and `too-large` for a file of more than a
 * mebibyte or 100,000 variables.
 */
function createDotenvFile(file: string, within: FolderBounds | undefined): () => Promise<Environment> {
  let environment: Environment | undefined
  const lookAt = async (path: string): Promise<Environment> => {
    // Do not block on a FIFO.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const { mtimeNs, ctimeNs, size, ino, isFile } = await statOf(handle)
      if (!isFile) throw unavailable('The path of the dotenv file is not that of a regular file. Correct it.')
      if (size > maxBytes) throw new ResourceError('too-large', `The dotenv file has more than ${maxBytes} bytes.`)
      const version = [mtimeNs, ctimeNs, size, ino].join(' ')
      if (environment?.version !== version)
        environment = { version, variables: variablesIn(await handle.readFile('utf8')) }
      return environment
    } finally {
      await handle.close()
    }
  }
  return async () => {
    try {
      return await (within === undefined ? lookAt(file) : openWithin(file, within, ({ at }) => lookAt(at)))
    } catch (error) {
      if (isResourceError(error)) throw error
      if (error instanceof LeadsOutError)
        throw unavailable(
          'The path of the dotenv file leads through a symbolic link, or out of the folder of the configuration. Name its target in a configuration that you trust.',
        )
      throw unavailable(
        'The dotenv file cannot be read. Check that it exists and that this user may read it.',
        {},
        error,
      )
    }
  }
}

async function statOf(handle: FileHandle) {
  const stats = await handle.stat({ bigint: true })
  const { mtimeNs, ctimeNs, ino } = stats
  return { mtimeNs, ctimeNs, ino, size: Number(stats.size), isFile: stats.isFile() }
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  try {
    const { root } = parseDotenv(text.replace(/^\ufeff/, ''), createNodeCounter(defaultSettingsLimits))
    const entries = root.kind === 'table' ? root.entries : []
    return Object.fromEntries(entries.map(({ key, value }) => [key, value.kind === 'scalar' ? value.text : '']))
  } catch (error) {
    if (isParseFault(error))
      throw new ResourceError('too-large', `The dotenv file has too many variables: ${error.fault.what}`)
    throw error
  }
}
