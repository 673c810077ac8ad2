import { readFile } from 'node:fs/promises'
import type { Config, LoadResult } from '../../config/load.ts'
import type { WithheldPart } from '../../config/untrusted.ts'
import { escapeText } from '../terminal/text.ts'
import { joinCommand } from './command-line.ts'

/**
 * Loads a configuration. A file that the user named is trusted. In a file that was found in the current folder, the parts that do
 * more than read that folder are left out until the user trusts it (`hikidashi trust`). A missing folder or file of a mount does
 * not make the configuration invalid.
 */
export async function loadLocalConfig(file: string, isNamed: boolean): Promise<LoadResult> {
  // Loaded here, so that serving a folder does not load the code that reads configurations.
  const [{ loadConfig }, { isTrustedConfig }] = await Promise.all([
    import('../../config/load.ts'),
    import('../../config/untrusted.ts'),
  ])
  const trust = isNamed ? {} : { isTrusted: (content: Uint8Array) => isTrustedConfig(file, content) }
  return loadConfig(file, { ...trust, admitsAbsent: true })
}

export function trustCommand(file: string): string {
  return `hikidashi trust ${joinCommand([file])}`
}

const maxShown = 5
const maxLength = 160

/** Returns a sentence about the omitted parts of a configuration and how to allow them; undefined if there are none. */
export function withheldNote({ withheld, file }: Pick<Config, 'withheld' | 'file'>): string | undefined {
  if (withheld.length === 0) return undefined
  const more = withheld.length > maxShown ? `; and ${withheld.length - maxShown} more` : ''
  const parts = withheld.slice(0, maxShown).map((part) => `${escapeText(part.name)} (${formatEffects(part)})`)
  return `Left out, because this configuration was found in the current folder and you have not trusted it: ${parts.join('; ')}${more}. If you trust what it does: ${trustCommand(file)}`
}

/** Formats the effects of a part of a configuration, escaped and shortened: `starts the program ./server, reads ../notes`. */
export function formatEffects({ effects }: WithheldPart, maxChars = maxLength): string {
  const all = effects.map(({ kind, what }) => `${verbs[kind]} ${escapeText(what)}`)
  const text = [...new Set(all)].join(', ')
  const characters = [...text]
  return characters.length <= maxChars ? text : `${characters.slice(0, maxChars).join('')}…`
}

const verbs = {
  starts: 'starts the program',
  runs: 'runs the code of',
  reads: 'reads',
  writes: 'writes to',
  sends: 'connects to',
  admits: 'answers',
  needs: 'needs',
} as const

/** Converts a part that is left out to JSON for programs. */
export function withheldJson({ name, part, effects }: WithheldPart) {
  return { name, part, effects }
}

/** Message when the trust in a configuration could not be stored. */
export const trustNotSavedNote =
  'your trust in this configuration could not be stored in the state folder. Name the file with --config, or run: hikidashi trust'

/**
 * Records that the user trusts a configuration that the user named, or that `init` wrote. Resolves to whether it was recorded.
 *
 * @param content The bytes that are trusted; by default those in the file.
 */
export async function saveTrust(file: string, content?: Uint8Array): Promise<boolean> {
  const { recordTrust } = await import('../../config/untrusted.ts')
  return Promise.resolve(content ?? readFile(file))
    .then((bytes) => recordTrust(file, bytes))
    .then(
      () => true,
      () => false,
    )
}
