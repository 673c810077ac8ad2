import { createHash } from 'node:crypto'
import type { FolderBounds } from '../core/kit/within.ts'
import type { Log, MetricsRegistry } from '../core/log.ts'
import type { MountIcon, MountLabel } from '../core/mount-kind.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Provider } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { SharedChanges } from '../core/shared.ts'
import { parseAddress } from '../core/uri.ts'
import type * as z from '../schema/builder.ts'
import type { MountOptions, mountShape } from '../schema/fields.ts'
import type { Finding } from '../schema/refusals.ts'
import type { Effect, EffectContext, EffectRules } from '../schema/shapes.ts'
import { isInside, resolveConfigPath } from '../schema/values.ts'
import type { Store, StoreOptions } from '../store/index.ts'
import type { RedactedOptions } from '../wrap/redacted.ts'
import type { SpilledOptions } from '../wrap/spilled.ts'
import type { LeftOutFiles } from './files/left-out.ts'

/** The parsed options of a mount: those of its source, and those of every mount. */
export type OptionsOf<Shape> = z.output<z.Members<Omit<typeof mountShape, keyof Shape> & Shape>>

interface SourceEffects<Options> {
  /** Returns the effects that follow from the mount as a whole. Default none. */
  readonly always?: (options: Options, context: EffectContext) => readonly Effect[]
  /** An option of the source without a rule is a type error. */
  readonly options: EffectRules<Omit<Options, keyof MountOptions>>
}

export interface FindingContext {
  readonly address: string
  readonly folder: string
  /** Returns the address of the mount that serves a file; undefined if none does. */
  readonly servedBy: (file: string) => string | undefined
}

export interface SourceAbilities {
  readonly watch?: boolean
  /** `separate`: the prompts change independently of entries, and the provider completes their arguments. */
  readonly prompts?: boolean | 'separate'
  readonly tools?: boolean
  readonly sees?: boolean
  readonly parts?: boolean
}

interface SourceFolder {
  /** The option that names the folder. */
  readonly option: string
  /** Prefix of the paths that the files have in the mount. Default none. */
  readonly prefix?: string
  /** Whether the mount serves the files of the folder as they are. */
  readonly isPlain?: true
}

interface SourcePrograms {
  /** Names or paths of programs, of which one is enough. */
  readonly names: readonly string[]
  /** The package to install. Undefined: the configuration names the program. */
  readonly install?: string
  readonly option: string
}

/**
 * Declares a source. A start loads the declarations of all sources, so their modules import next to nothing. `options` are the parsed
 * options of one mount.
 */
export interface Source<Options = Readonly<Record<string, unknown>>> {
  /** The name of the source: `provider` in a configuration. */
  readonly name: string
  /** The noun for the data of a mount, for people and models. Default: the name. */
  readonly noun?: string
  /** The icon of a mount in the explorer. Default `mount`. */
  readonly icon?: MountIcon
  /** The title of a mount in the explorer, unless it has one of its own or several mounts have the same. Default: its name. */
  readonly label?: MountLabel
  /** The use of a mount, in a few words, for the first screen of the explorer. */
  readonly purpose?: MountLabel
  /** Whether resources change all the time, such as measurements. */
  readonly isLive?: boolean
  readonly schema: () => Promise<{ readonly source: WrittenSchema }>
  readonly open: () => Promise<{ readonly open: (options: never, context: OpenContext) => Promise<Provider> }>
  abilities?(options: Options): SourceAbilities
  programs?(options: Options): SourcePrograms | undefined
  /**
   * How changes reach the replicas. `polled`: one replica at a time watches the source. `seen`: each watches it, and notifies the
   * others of changes that they may not see, as on a network file system. Default: the source itself notifies each of them, or it has no
   * `watch`.
   */
  readonly changes?: 'polled' | 'seen'
  /** Whether the source polls by itself if a mount has `poll`: its lists have no versions to compare. */
  readonly isPolling?: boolean
  /** Returns why a mount never changes, as a sentence. Undefined if it can change. */
  unchanging?(options: Options): string | undefined
  /** Whether each answer is computed for its request, so that there are no changes to report. */
  readonly isComputed?: boolean
  /** Whether mounts come after the others when a list must be cut. */
  readonly isDerived?: boolean
  /** Whether mounts write data to the store of the configuration. */
  readonly keeps?: boolean
  /** Whether `"over": "*"` leaves out mounts of the source. */
  readonly isUnsearched?: boolean
  /** For mounts that search other mounts: the option that names those, and the number of bytes of a text that are indexed. */
  readonly searches?: { readonly option: string; indexedBytes(options: Options): number | undefined }
  /** Whether an answer depends on its caller. */
  readonly isPersonal?: boolean
  /** The roles that may store records in a mount. Undefined for a source that stores none. */
  writers?(options: Options): readonly string[]
  readonly folder?: SourceFolder
  readonly leftOut?: () => Promise<{
    readonly leftOut: (options: never, context: FolderContext) => Promise<LeftOutFiles>
  }>
  /** Says why a mount has nothing at the path of an existing file. */
  readonly absence?: string
  /** Whether texts are decoded by their detected encoding. */
  readonly isDecoded?: boolean
  /** Whether a path is not a document of the source, so that it has no link to a page for people. */
  isUnlinked?(path: string): boolean
  isSingle?(options: Options): boolean
  isMeasuring?(options: Options): boolean
  /** Loads the OAuth client with which a person lets a mount read an account (`hikidashi auth`). */
  readonly account?: () => Promise<{ readonly account: SourceAccount }>
  /**
   * The options of a small mount, for the tables of abilities in the documentation: without those that `test/support/samples` adds.
   * Its paths are those of the folder that `scripts/abilities.ts` writes. Default none.
   */
  readonly sample?: Readonly<Record<string, unknown>>
  /** Loads the SQL statements that an operator runs once in a database (`hikidashi init --sql`). */
  readonly sql?: () => Promise<{ readonly setupSql: string }>
}

interface WrittenSchema {
  readonly about: string
  readonly shape: z.Shape
  readonly effects: { readonly options: object }
}

interface AccountClient {
  readonly id: string
  readonly secret: string | undefined
}

export interface SourceAccount {
  clientOf(options: never, folder: string): Promise<AccountClient | undefined>
  tokenFileOf(options: never, folder: string): string
  /** Asks a person for consent, at a URL that `show` gets. Resolves to the text of the token file. */
  ask(
    options: never,
    client: AccountClient,
    request: { readonly timeoutMs: number; readonly show: (url: string) => void },
  ): Promise<string>
}

export type OptionsOfModule<Module extends { readonly source: { readonly shape: z.Shape } }> = OptionsOf<
  Module['source']['shape']
>

export interface SourceSchema<Shape extends z.Shape> {
  readonly about: string
  /**
   * The keys of a mount, besides `provider` and the keys that every mount has. A key here replaces one of these that has the same name.
   */
  readonly shape: Shape
  readonly check?: (options: OptionsOf<Shape>, context: z.RefinementCtx) => void
  readonly effects: SourceEffects<OptionsOf<Shape>>
  /** The keys that name a file or folder which must exist. From a `served folder`, the mount serves the files. */
  readonly needs?: { readonly [Key in keyof Shape]?: 'file' | 'folder' | 'served folder' }
  /**
   * Finds faults that the schema cannot find. It gets the mount as it is written, even if it is invalid, and the options if
   * they are valid.
   */
  readonly findings?: (
    written: Readonly<Record<string, unknown>>,
    context: FindingContext,
    options: OptionsOf<Shape> | undefined,
  ) => readonly Finding[] | Promise<readonly Finding[]>
}

/** Returns its argument. The types of the effects and checks follow from the shape. */
export function defineSourceSchema<const Shape extends z.Shape>(source: SourceSchema<Shape>): SourceSchema<Shape> {
  return source
}

export interface DocumentRules {
  /** Globs over Markdown documents whose first heading is their title. Default none. */
  readonly headings?: readonly string[]
  /** Globs over files that are served although their names are those of credentials. Default none. */
  readonly except?: readonly string[]
  /** Whether the provider itself names the translations of a document. */
  readonly findsTranslations?: boolean
  /** Globs over documents with front matter, if the mount names none. Default none. */
  readonly frontMatter?: readonly string[]
}

export interface PathLimits {
  /** The symbolic links that are followed below the folder of the mount. */
  readonly symlinks: FolderBounds['symlinks']
  /** Whether a path may lie outside of that folder. */
  readonly outside: boolean
}

export type FolderContext = Pick<OpenContext, 'folder' | 'confined'>

/** Returns the absolute path of a file or folder that a mount names, and the limits of its links, if any. */
export function locatePath(
  name: string,
  { folder, confined }: FolderContext,
): { readonly path: string; readonly within?: FolderBounds } {
  const path = resolveConfigPath(name, folder)
  if (confined === undefined || (confined.outside && !isInside(path, folder))) return { path }
  return { path, within: { folder, symlinks: confined.symlinks } }
}

export function locateRoot(options: { readonly root: string }, context: FolderContext) {
  const { path, ...found } = locatePath(options.root, context)
  return { root: path, ...found }
}

export interface OpenContext extends Omit<MountSettings, 'key' | 'versionKey' | 'replicas' | 'mountNumber'> {
  readonly address: string
  /** The folder to which relative paths of the mount refer. */
  readonly folder: string
  /** Limits of the paths of the mount. Undefined: a person chose the paths, so their symbolic links are followed. */
  readonly confined?: PathLimits
  /** Returns the known secrets, and the key of version hashes, for `redacted`. */
  redaction(): Promise<Pick<RedactedOptions, 'key' | 'scrubber' | 'log'>>
  /** The languages in which documents may have translations. Undefined if the mount names none, and empty if access rules hide some paths. */
  readonly languages?: readonly string[]
  /** Serves the files of a provider as documents, as the options of the mount say (`documentsShape`). */
  documents(provider: Provider, rules?: DocumentRules): Promise<Provider>
}

export type OpenSource<Source extends { readonly shape: z.Shape }, Opened extends Provider = Provider> = (
  options: OptionsOf<Source['shape']>,
  context: OpenContext,
) => Promise<Opened>

export interface MountSettings {
  readonly log: Log
  readonly scrubber?: Scrubber
  /** Key for the version hashes of redacted contents. Replicas share it. Default: a separate key for each mount. */
  readonly key?: Uint8Array
  readonly versionKey?: () => Promise<Uint8Array | undefined>
  readonly store?: LazyStore
  readonly replicas?: SharedChanges
  readonly spill?: SpilledOptions
  readonly measurements?: MetricsRegistry
  readonly searchable?: MountsToSearch
  /** Number of the mount, from 1: its name where its address must not be shown. */
  readonly mountNumber?: number
}

/** The mounts that a search reads. They can be read once all mounts are open. */
export interface MountsToSearch {
  reader(address: string): MountReader | undefined
  /** Returns the options with which a mount is opened, including those that its source finds out; undefined if there is no such mount. */
  refined(address: string): Promise<object | undefined>
  /** The addresses of the mounts that `"over": "*"` searches. */
  readonly addresses: readonly string[]
}

/** Creates a store that is opened once, when it is first needed. */
export function createLazyStore(options: StoreOptions, log: Log) {
  let opening: Promise<Store> | undefined
  return {
    open: (): Promise<Store> => {
      opening ??= import('../store/index.ts').then(({ openStore }) => openStore({ ...options, log }))
      return opening
    },
    close: async (): Promise<void> => {
      const open = await opening?.catch(() => undefined)
      await open?.close()
    },
  }
}

export type LazyStore = ReturnType<typeof createLazyStore>

/** Returns the address of a mount, or its hash if it is longer than 150 bytes, as a part of the name of a collection in the store. */
export function collectionName(address: string): string {
  const { text } = parseAddress(address)
  return Buffer.byteLength(text) <= 150 ? text : createHash('sha256').update(text).digest('hex')
}
