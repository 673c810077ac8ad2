import { randomBytes } from 'node:crypto'
import { invalid, notFound } from '../core/errors.ts'
import { mapped } from '../core/kit/groups.ts'
import type { Log } from '../core/log.ts'
import type { Change, Content, Context, Provider, ReadRequest } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Layer } from '../secrets/find.ts'
import { type Redactor, sharedRedactor } from '../secrets/redactor.ts'
import { createCleaner } from './redacted/cleaner.ts'
import { cleanCompletion, cleanEntry, createSeal, isSecretPath } from './redacted/facts.ts'
import { cleanPrompts } from './redacted/prompts.ts'
import { createRangeReader } from './redacted/range.ts'
import { cleanTools } from './redacted/tools.ts'

export interface RedactedOptions {
  /**
   * `mask`: each secret is replaced by `[redacted]`. `withhold`: a content that holds one is not shown at all. `off`: nothing
   * is taken out. Default `mask`.
   */
  readonly mode?: 'mask' | 'withhold' | 'off'
  /** Key of the version hashes. Replicas share it. Default: a random key per process. */
  readonly key?: Uint8Array
  /** Values that are known to be secret: they are taken out as well, before any part is cut off. */
  readonly scrubber?: Scrubber
  /** Globs over paths: a file that matches is looked through like others, though it has the name of one that holds credentials. */
  readonly except?: readonly string[]
  readonly log?: Log
  /** Looks through contents, in a worker. By default the one of this process. */
  readonly redactor?: Redactor
  /** Layers that are left out: by tests, to show that each is needed. */
  readonly without?: readonly Layer[]
}

/**
 * Takes the secrets out of everything that a provider says: contents, titles, descriptions, metadata, completions.
 *
 * Each is replaced by the constant `[redacted]`. Sizes are left out, and versions are hashed with a key, since both reveal
 * facts about the secret; an entry with a secret in its path looks missing. Texts are scanned as a whole, or in overlapping
 * windows, before a part is cut off: this wrapper goes inside of `sliced`, and outside of decoding wrappers. A content that
 * cannot be scanned is withheld, with a text that says so. docs/redaction.md lists the secrets that are found and those that are not.
 *
 * @throws ResourceError `invalid` (reason `mode`) for another mode, and for a malformed glob.
 */
export function redacted(given: Provider, options: RedactedOptions = {}): Provider {
  const { mode = 'mask', key = randomBytes(32), log = () => {}, scrubber, except = [], without = [] } = options
  if (mode === 'off') return given
  // Parts are told as the source has them.
  const { parts: _, ...provider } = given
  if (mode !== 'mask' && mode !== 'withhold')
    throw invalid('The mode of redaction must be mask, withhold or off.', 'mode')
  const seal = createSeal(key, mode)
  const redactor = options.redactor ?? sharedRedactor()
  const cleaner = createCleaner({ mode, seal, redactor, scrubber, except, log, without })
  const readRange = createRangeReader(provider, cleaner)
  const { stat, watch, complete, prompts, tools } = provider

  const readWhole = async ({ path, params }: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const contents: Content[] = []
    for (const content of await provider.read({ path, params }, context)) {
      if (content.path !== undefined && isSecretPath(content.path)) continue
      contents.push(await cleaner.whole(content, path, context.signal))
    }
    if (contents.length === 0) throw notFound('every part has a secret in its path')
    return contents
  }

  return {
    ...provider,
    list: (query, context) => {
      const { skim } = query
      const isShown = (path: string) => !isSecretPath(path) && skim?.(path) === true
      const entries = provider.list(skim === undefined ? query : { ...query, skim: isShown }, context)
      return mapped(entries, (entry) => (isSecretPath(entry.path) ? undefined : cleanEntry(entry, seal)))
    },
    read: async (request, context) => {
      const { path, range } = request
      if (isSecretPath(path)) throw notFound('a secret in the path')
      // Only as a whole can it be told whether there is a secret in it at all.
      if (range === undefined || mode === 'withhold' || cleaner.isVault(path)) return readWhole(request, context)
      const part = await readRange(request, range, context)
      return part === undefined ? readWhole(request, context) : [part]
    },
    ...(stat === undefined
      ? {}
      : {
          stat: async (path, context) => {
            if (isSecretPath(path)) throw notFound('a secret in the path')
            return cleanEntry(await stat(path, context), seal)
          },
        }),
    ...(complete === undefined
      ? {}
      : {
          complete: async (request, context) => {
            const completion = await complete(request, context)
            return completion && cleanCompletion(completion)
          },
        }),
    ...(prompts === undefined ? {} : { prompts: cleanPrompts(prompts, cleaner, seal) }),
    ...(tools === undefined ? {} : { tools: cleanTools(tools, cleaner, seal) }),
    ...(watch === undefined ? {} : { watch: async (signal) => named(await watch(signal)) }),
  }
}

/** Changes without those whose path is a secret. */
async function* named(changes: AsyncIterable<Change>): AsyncGenerator<Change> {
  for await (const change of changes) if (change.path === undefined || !isSecretPath(change.path)) yield change
}
