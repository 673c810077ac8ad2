import type { ChildProcess } from 'node:child_process'
import { constants, setPriority, tmpdir } from 'node:os'
import { unavailable } from '../core/errors.ts'
import { childLimits } from '../core/kit/workers.ts'
import type { Picture } from '../readings/formats.ts'
import { findProgram, runProgram } from './program.ts'

/** Time-out of OCR of one page, and of the question for the languages, in milliseconds. */
const [pageMs, questionMs] = [60_000, 10_000]
const maxOutputBytes = 1024 * 1024

export interface InstalledOcr {
  readonly program: string
  readonly languages: readonly string[]
}

/** Looks for `tesseract` on the PATH. Undefined: there is none, or it does not run. */
export async function findTesseract(signal: AbortSignal): Promise<InstalledOcr | undefined> {
  const program = await findProgram('tesseract')
  if (program === undefined) return undefined
  // The first line of the output is a heading, and no language.
  const output = await run(program, ['--list-langs'], undefined, questionMs, signal).catch(() => '')
  const languages = output
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
  return languages.length === 0 ? undefined : { program, languages: languages.filter((line) => line !== '') }
}

export function missingLanguages({ languages }: InstalledOcr, needs: readonly string[]): readonly string[] {
  return needs.filter((language) => !languages.includes(language))
}

/** Returns the names of the Debian packages of `tesseract` and of languages. */
export function tesseractPackages(languages: readonly string[]): readonly string[] {
  const packages = languages.map(
    (language) =>
      `tesseract-ocr-${language
        .replace(/^script\//, 'script-')
        .replaceAll('_', '-')
        .toLowerCase()}`,
  )
  return ['tesseract-ocr', ...packages]
}

/**
 * Reads the text in a picture, with limits.
 *
 * @throws ResourceError `unavailable` if `tesseract` fails, is killed, or exceeds a limit.
 */
export async function readPicture(
  program: string,
  languages: readonly string[],
  { pgm, dpi }: Picture,
  signal: AbortSignal,
): Promise<string> {
  const args = ['stdin', 'stdout', '-l', languages.join('+'), '--dpi', String(dpi)]
  const output = await run(program, args, pgm, pageMs, signal)
  // Remove control characters, such as the form feed that ends the page.
  return output
    .replace(/(?![\n\t])\p{Cc}/gu, '')
    .toWellFormed()
    .trim()
}

async function run(
  program: string,
  args: readonly string[],
  input: Uint8Array | undefined,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  const output = await runProgram(program, args, childLimits.ocr(timeoutMs), {
    env: environment(),
    cwd: tmpdir(),
    ...(input === undefined ? {} : { input }),
    timeoutMs,
    maxBytes: maxOutputBytes,
    signal,
    onStart: lowerPriority,
    errors: {
      late: () => unavailable(`tesseract did not end within ${timeoutMs} ms.`),
      tooMuch: () => unavailable(`tesseract wrote more than ${maxOutputBytes} bytes of output.`),
      notStarted: (cause) => unavailable('tesseract cannot be started.', {}, cause),
      failed: (code) => unavailable(`tesseract failed (${code === null ? 'it was killed' : `exit code ${code}`}).`),
    },
  })
  return output.toString('utf8')
}

function environment(): Readonly<Record<string, string>> {
  const { TESSDATA_PREFIX: folder, SystemRoot: system } = process.env
  return {
    OMP_THREAD_LIMIT: '1',
    LC_ALL: 'C',
    ...(folder === undefined ? {} : { TESSDATA_PREFIX: folder }),
    ...(system === undefined ? {} : { SystemRoot: system }),
  }
}

function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {
    // The process has ended, or the system does not allow the change.
  }
}
