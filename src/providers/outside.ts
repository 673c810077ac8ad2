import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { errorCodeOf, isResourceError, unavailable } from '../core/errors.ts'
import { isObject, memberOf, requireProvider } from '../core/kit/object.ts'
import { isLabel, isLabelText, maxLabelLength, mountIcons } from '../core/mount-kind.ts'
import type { Provider } from '../core/provider.ts'
import type * as z from '../schema/builder.ts'
import { documentEffectRules, documentsShape } from '../schema/shapes.ts'
import { requireSecret, resolveConfigPath } from '../schema/values.ts'
import { registerOutsideSource, sourceNamed } from './index.ts'
import type { OpenContext, OptionsOf, Source, SourceSchema } from './source.ts'

export interface OutsideContext extends Pick<OpenContext, 'address' | 'folder' | 'log'> {
  /** Returns the absolute path of a file or folder that an option names. */
  path(name: string): string
  /**
   * Returns the value of a secret that an option names.
   *
   * @throws ResourceError `invalid` if the variable or file is missing, or the value contains a control character.
   */
  secret(option: string, value: { readonly env: string } | { readonly file: string }): Promise<string>
}

type OutsideFacts<Options> = Pick<
  Source<Options>,
  | 'name'
  | 'noun'
  | 'icon'
  | 'label'
  | 'purpose'
  | 'isLive'
  | 'abilities'
  | 'programs'
  | 'changes'
  | 'unchanging'
  | 'isComputed'
  | 'isDerived'
  | 'isUnsearched'
  | 'isPersonal'
  | 'folder'
  | 'absence'
  | 'isUnlinked'
  | 'isSingle'
>

/** A source of another author: the export `source`, or else the default one, of a module that a configuration names as `provider`. */
export interface OutsideSource<Shape extends z.Shape>
  extends OutsideFacts<OptionsOf<Shape & typeof documentsShape>>,
    Pick<SourceSchema<Shape & typeof documentsShape>, 'about' | 'check' | 'needs'> {
  /** The keys of a mount, besides those that every mount of documents has. */
  readonly options: Shape
  open(options: OptionsOf<Shape & typeof documentsShape>, context: OutsideContext): Provider | Promise<Provider>
}

interface OutsideFault {
  readonly message: string
  readonly fix: string
}

const isPathName = (name: string) => /^(?:\.{0,2}[\\/]|~[\\/]|[A-Za-z]:[\\/])/.test(name)

const packageName = /^(?:@[\w.~-]+\/)?[\w.~-]+(?:\/[\w./~-]+)?$/

/**
 * Returns the URL of the module that a configuration names as a source: a path, relative to the folder of the configuration, or the name
 * of a package that is installed there. Runs no code of the module. Undefined for the name of a known source, and if no such package is
 * installed.
 */
export function outsideModuleUrl(name: unknown, folder: string): string | undefined {
  if (typeof name !== 'string' || sourceNamed(name) !== undefined) return undefined
  if (isPathName(name)) return pathToFileURL(resolveConfigPath(name, folder)).href
  if (!packageName.test(name)) return undefined
  const require = createRequire(join(folder, 'hikidashi.json'))
  try {
    const file = require.resolve(name)
    return file === name ? undefined : pathToFileURL(file).href
  } catch (error) {
    return errorCodeOf(error) === 'ERR_PACKAGE_PATH_NOT_EXPORTED' ? importedModule(name, require) : undefined
  }
}

/** Returns the URL of the main module of a package that can be imported, but not required. */
function importedModule(name: string, require: NodeJS.Require): string | undefined {
  for (const folder of require.resolve.paths(name) ?? []) {
    const file = join(folder, name, 'package.json')
    try {
      const { exports } = require(file) as { readonly exports: unknown }
      const target = importTarget(memberOf(exports, '.') ?? exports)
      return target === undefined ? undefined : pathToFileURL(join(dirname(file), target)).href
    } catch {
      // Try the next folder.
    }
  }
  return undefined
}

function importTarget(entry: unknown): string | undefined {
  if (typeof entry === 'string') return entry
  return isObject(entry) ? importTarget(entry.node ?? entry.import ?? entry.default) : undefined
}

/**
 * Imports the module of a source that is not part of hikidashi, which runs its code. Resolves to a fault if the module cannot be loaded or
 * exports no valid source.
 */
export async function loadOutsideSource(name: string, url: string): Promise<Source | OutsideFault> {
  const cachedSource = sourceNamed(url)
  if (cachedSource !== undefined) return cachedSource
  let moduleExports: unknown
  try {
    moduleExports = await import(url)
  } catch (error) {
    return unloadable(name, url, error)
  }
  const source = memberOf(moduleExports, 'source') ?? memberOf(moduleExports, 'default')
  const fault = sourceFault(source)
  if (fault !== undefined)
    return {
      message: `The module ${name} exports no valid source. ${fault}`,
      fix: 'docs/writing-a-provider.md shows a valid source.',
    }
  const newSource = sourceFrom(source as OutsideSource<z.Shape>)
  registerOutsideSource(url, newSource)
  return newSource
}

function unloadable(name: string, url: string, error: unknown): OutsideFault {
  const text = error instanceof Error ? error.message : String(error)
  if (url.startsWith('file:') && !existsSync(fileURLToPath(url)))
    return { message: `The module ${name} does not exist.`, fix: 'Correct the path.' }
  const line = (text.split('\n')[0] ?? '').replace(/[.!]?$/, '.')
  return {
    message: `The module ${name} cannot be loaded: ${line}`,
    fix: 'Correct the module, or install the packages that it imports.',
  }
}

function sourceFault(value: unknown): string | undefined {
  if (!isObject(value)) return 'It needs: export const source = defineSource({ name, about, options, open }).'
  const { name, about, options = {}, open } = value
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(name))
    return 'Its "name" must be a word of lower-case letters, digits and hyphens that begins with a letter.'
  if (sourceNamed(name) !== undefined)
    return `Its name ${JSON.stringify(name)} is the name of a source of hikidashi. Choose another one.`
  if (typeof about !== 'string' || about === '') return 'Its "about" must describe what a mount serves.'
  if (typeof open !== 'function') return 'Its "open" must be a function that returns a provider.'
  const faultText = shownFault(value)
  if (faultText !== undefined) return faultText
  if (!isObject(options)) return 'Its "options" must be an object of schemas.'
  const odd = Object.entries(options).find(([, schema]) => !isObject(schema) || typeof schema.safeParse !== 'function')
  return odd === undefined ? undefined : `Its option ${JSON.stringify(odd[0])} must be a schema, such as option.text().`
}

function shownFault({ noun, icon, ...texts }: Readonly<Record<string, unknown>>): string | undefined {
  if (noun !== undefined && !isLabelText(noun))
    return `Its "noun" must be a string of at most ${maxLabelLength} characters that is not blank.`
  if (icon !== undefined && !mountIcons.some((name) => name === icon))
    return `Its "icon" must be one of ${mountIcons.join(', ')}.`
  const odd = (['label', 'purpose'] as const).find((name) => texts[name] !== undefined && !isLabel(texts[name]))
  return odd === undefined
    ? undefined
    : `Its "${odd}" must be { en, ja }, of strings of at most ${maxLabelLength} characters that are not blank; "ja" may be missing.`
}

function sourceFrom(outside: OutsideSource<z.Shape>): Source {
  const { about, options = {}, check, needs, open, ...facts } = outside
  const shape = { ...options, ...documentsShape }
  // Opening the mount runs the code of its source, which needs trust: the options have no further effects to declare.
  const effects = Object.fromEntries(Object.keys(options).map((key) => [key, 'none' as const]))
  const source = {
    about,
    shape,
    effects: { options: { ...effects, ...documentEffectRules } },
    ...(check && { check }),
    ...(needs && { needs }),
  }
  return {
    ...(facts as OutsideFacts<Readonly<Record<string, unknown>>>),
    schema: async () => ({ source }),
    open: async () => ({
      open: async (mountOptions, { address, folder, log, documents }) => {
        const path = (name: string) => resolveConfigPath(name, folder)
        const secret: OutsideContext['secret'] = (option, value) => requireSecret(option, value, folder)
        const provider = await openedBy(outside, () => open(mountOptions, { address, folder, log, path, secret }))
        return documents(provider)
      },
    }),
  }
}

/** @throws ResourceError `unavailable` in place of an error that is not a ResourceError. */
async function openedBy(
  { name }: Pick<OutsideFacts<never>, 'name'>,
  open: () => Provider | Promise<Provider>,
): Promise<Provider> {
  try {
    const provider = await open()
    requireProvider(`"open" of the source ${name}`, provider)
    return provider
  } catch (error) {
    if (isResourceError(error)) throw error
    throw unavailable(`The source ${name} failed: ${error instanceof Error ? error.message : String(error)}`, {}, error)
  }
}
