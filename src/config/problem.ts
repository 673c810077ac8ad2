import type { Finding, PathStep } from '../schema/refusals.ts'

export type { Finding, PathStep } from '../schema/refusals.ts'

export interface ConfigProblem {
  readonly file: string
  /** From 1 up; 0 if the problem is about the file as a whole. */
  readonly line: number
  readonly column: number
  /** The path of the key, such as `mounts["file:///docs"].root`; empty if the problem is about the file as a whole. */
  readonly key: string
  readonly message: string
  readonly fix: string
}

export function locateFinding(
  document: ConfigDocument,
  finding: Finding,
  at: 'key' | 'value' = 'value',
): ConfigProblem {
  const { path, message, fix } = finding
  return { file: document.file, ...document.positionOf(path, at), key: formatKey(path), message, fix }
}

/** @param what The private file that the mount serves, as the subject of the message. */
export function servedFileFinding(path: Finding['path'], what: string, address: string): Finding {
  const message = `${what} lies in the folder that the mount ${JSON.stringify(address)} serves.`
  return { path, message, fix: 'Move it to a folder that no mount serves.' }
}

/** Returns one line: `hikidashi.json:3:5: mounts: MESSAGE. FIX.` */
export function formatConfigProblem({ file, line, column, key, message, fix }: ConfigProblem): string {
  const position = line === 0 ? file : `${file}:${line}:${column}`
  return `${position}: ${key === '' ? '' : `${key}: `}${message} ${fix}`
}

/** Spells a path of keys as JavaScript does: `mounts["file:///docs"].root`. */
export function formatKey(path: readonly PathStep[]): string {
  const parts = path.map((step) => {
    if (typeof step === 'number') return `[${step}]`
    return /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
  })
  return parts.join('').replace(/^\./, '')
}

export interface ConfigDocument {
  readonly file: string
  readonly value: unknown
  /** Line and column start at 1. For a missing value, the position is that of the key of the nearest enclosing one. */
  positionOf(path: readonly PathStep[], at: 'key' | 'value'): TextPosition
}

export interface TextPosition {
  readonly line: number
  readonly column: number
}
