import { createHash } from 'node:crypto'
import type { Within } from '../core/kit/within.ts'
import type { Log, Measurements } from '../core/log.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Provider } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { SharedChanges } from '../core/shared.ts'
import { parseAddress } from '../core/uri.ts'
import type * as z from '../schema/builder.ts'
import type { MountOptions, mountShape } from '../schema/fields.ts'
import type { Finding } from '../schema/refusals.ts'
import type { Effect, Context as EffectContext, Rules } from '../schema/shapes.ts'
import { isInside, resolveFolder } from '../schema/values.ts'
import type { Store, StoreOptions } from '../store/index.ts'
import type { RedactedOptions } from '../wrap/redacted.ts'
import type { SpilledOptions } from '../wrap/spilled.ts'

/** The parsed options of a mount: those of its source, and those of every mount. */
export type OptionsOf<Shape> = z.output<z.Members<Omit<typeof mountShape, keyof Shape> & Shape>>

/** The effects of a mount beyond reading the folder of its configuration. */
interface SourceEffects<Options> {
  /** Effects of a mount with any options. Default none. */
  readonly always?: (options: Options, context: EffectContext) => readonly Effect[]
  /** One rule for each option of the source. An option without a rule is a type error. */
  readonly options: Rules<Omit<Options, keyof MountOptions>>
}

export interface FindingContext {
  readonly address: string
  /** The folder of the configuration. */
  readonly folder: string
  /** The address of the mount that serves a file, if one does. */
  readonly servedBy: (file: string) => string | undefined
}

/**
 * A source for the configuration: the schema of its mounts, and facts that follow from their options before anything is opened.
 */
export interface SourceConfig<Shape extends z.Shape> {
  /** Describes what a mount serves. */
  readonly about: string
  /**
   * The keys of a mount, besides `provider` and the keys of every mount. A key here replaces the key of every mount with this name.
   */
  readonly shape: Shape
  /** Refuses options that do not go together. */
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

/** Declares a source: the types of its effects and checks follow from its shape. */
export function defineSource<const Shape extends z.Shape>(source: SourceConfig<Shape>): SourceConfig<Shape> {
  return source
}

/** Facts about the files of a provider that are served as documents. */
export interface DocumentFacts {
  /** Globs over Markdown documents whose first heading is their title. Default none. */
  readonly headings?: readonly string[]
  /** Globs over files that are served although their names are those of credentials. Default none. */
  readonly except?: readonly string[]
  /** Whether to look for translations of a document even if the mount names no languages. */
  readonly findsTwins?: boolean
  /** Globs over documents with front matter, if the mount names none. Default none. */
  readonly frontMatter?: readonly string[]
}

/** Limits of the paths of a mount: the symbolic links that are followed below the folder, and whether a path may lie outside of it. */
export interface Confined {
  readonly symlinks: Within['symlinks']
  readonly outside: boolean
}

/** Returns the absolute path of a file or folder that a mount names, and the limits of its links. */
export function located(
  name: string,
  { folder, confined }: Pick<OpenContext, 'folder' | 'confined'>,
): { readonly path: string; readonly within?: Within } {
  const path = resolveFolder(name, folder)
  if (confined === undefined || (confined.outside && !isInside(path, folder))) return { path }
  return { path, within: { folder, symlinks: confined.symlinks } }
}

/** The mount that a source is opened for. */
export interface OpenContext extends Omit<MountSettings, 'key' | 'versionKey' | 'replicas' | 'mountNumber'> {
  readonly address: string
  /** The folder to which relative paths of the mount refer. */
  readonly folder: string
  /** Limits of the paths of the mount, if no person named them. Undefined: their symbolic links are followed. */
  readonly confined?: Confined
  /** Returns the known secrets, and the key of version hashes, for `redacted`. */
  redaction(): Promise<Pick<RedactedOptions, 'key' | 'scrubber' | 'log'>>
  /** Serves the files of a provider as documents, as the options of the mount say (`documentsShape`). */
  documents(provider: Provider, facts?: DocumentFacts): Promise<Provider>
}

/**
 * Opens a source with the options of a mount.
 *
 * @throws ResourceError `invalid` for unusable options, and errors of the provider.
 */
export type OpenSource<Source extends { readonly shape: z.Shape }, Opened extends Provider = Provider> = (
  options: OptionsOf<Source['shape']>,
  context: OpenContext,
) => Promise<Opened>

/** Settings for opening mounts. */
export interface MountSettings {
  readonly log: Log
  /** Removes known secrets, for providers that redact. */
  readonly scrubber?: Scrubber
  /** Key for the version hashes of redacted contents. Replicas share it. Default: a separate key for each mount. */
  readonly key?: Uint8Array
  /** Loads the key for version hashes when it is needed. */
  readonly versionKey?: () => Promise<Uint8Array | undefined>
  /** Store of results and measurements. */
  readonly store?: LazyStore
  /** The changes that this process shares with the other replicas. */
  readonly replicas?: SharedChanges
  /** Storage of long results of tools. */
  readonly spill?: SpilledOptions
  /** Measurements of this process. */
  readonly measurements?: Measurements
  /** The other mounts, once all of them are open. */
  readonly searchable?: Searchable
  /** Number of the mount, from 1: its name where its address must not be shown. */
  readonly mountNumber?: number
}

/** The mounts that a search reads. They are opened together with it, and exist once the catalog does. */
export interface Searchable {
  reader(address: string): MountReader | undefined
  /** Returns the options with which a mount is opened, if they depend on its source. */
  refined(address: string): Promise<object | undefined>
  /** The addresses of the mounts that `"over": "*"` searches. */
  readonly addresses: readonly string[]
}

/** Creates a store that is opened once, when it is first needed. */
export function lazyStore(options: StoreOptions, log: Log) {
  let opened: Promise<Store> | undefined
  return {
    open: (): Promise<Store> => {
      opened ??= import('../store/index.ts').then(({ openStore }) => openStore({ ...options, log }))
      return opened
    },
    /** Closes the store, if it was opened. */
    close: async (): Promise<void> => {
      const open = await opened?.catch(() => undefined)
      await open?.close()
    },
  }
}

export type LazyStore = ReturnType<typeof lazyStore>

/** Returns a short text for the address of a mount, as a part of the name of a collection in the store. */
export function collectionName(address: string): string {
  const { text } = parseAddress(address)
  return Buffer.byteLength(text) <= 150 ? text : createHash('sha256').update(text).digest('hex')
}
