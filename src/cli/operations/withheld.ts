import { readFile } from 'node:fs/promises'
import type { Config, LoadResult } from '../../config/load.ts'
import type { WithheldPart } from '../../config/untrusted.ts'
import { escapeText } from '../terminal/text.ts'
import { joinCommand } from './command-line.ts'

/**
 * Loads a configuration. A file that the user named is trusted. Of another file, parts that do more than read its
 * folder are left out until the user trusts it. A mount may lack its folder or file.
 */
export async function loadLocalConfig(file: string, isNamed: boolean): Promise<LoadResult> {
  // Serving a folder then does not load the code that reads configurations.
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

/** Returns a sentence about the omitted parts and how to allow them; `undefined` if there are none. */
export function withheldNote({ withheld, file }: Pick<Config, 'withheld' | 'file'>): string | undefined {
  if (withheld.length === 0) return undefined
  const more = withheld.length > maxShown ? `; and ${withheld.length - maxShown} more` : ''
  const parts = withheld.slice(0, maxShown).map((part) => `${escapeText(part.name)} (${formatEffects(part)})`)
  return `Left out, because this configuration was found in the current folder and you have not trusted it: ${parts.join('; ')}${more}. If you trust what it does: ${trustCommand(file)}`
}

/** Returns a text such as `starts the program ./server, reads ../notes`, escaped and shortened. */
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

export function withheldJson({ name, part, effects }: WithheldPart) {
  return { name, part, effects }
}

export const trustNotSavedNote =
  'your trust in this configuration could not be stored in the state folder. Name the file with --config, or run: hikidashi trust'

/**
 * Records that the user trusts a configuration. Resolves to whether this was possible.
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
