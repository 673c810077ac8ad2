import { extname, join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { workerLimits } from '../../core/kit/child-limits.ts'
import { createHost } from '../../core/kit/worker-host.ts'
import type { ReadingAnswer, ReadingJob, SheetText } from '../../readings/formats.ts'

export interface Sheets {
  /** Returns the sheets of a workbook, each as CSV. Throws `invalid` and `too-large`, as readings of documents do. */
  read(workbook: Uint8Array, signal: AbortSignal): Promise<readonly SheetText[]>
  close(): void
}

/** Limits of one workbook: characters of its text, and bytes of its unpacked content. */
const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }

/** Splits workbooks into their sheets, in the worker thread that reads documents. */
export function createSheets(): Sheets {
  const file = join(import.meta.dirname, '../../readings', `worker${extname(import.meta.filename)}`)
  const host = createHost<ReadingJob, ReadingAnswer>({ file, ...workerLimits.documents })
  return {
    read: async (bytes, signal) => {
      const outcome = await host.run({ format: 'xlsx', form: 'csv', bytes, limits }, signal)
      if ('failure' in outcome)
        throw new ResourceError('too-large', 'The sheets take more time or memory than there is to read them.', {
          reason: outcome.failure === 'late' ? 'time' : 'memory',
        })
      const { result } = outcome
      if ('reading' in result) return result.reading.sheets ?? []
      throw new ResourceError(result.kind, result.message, { reason: result.reason })
    },
    close: () => host.close(),
  }
}

/** Formats all sheets as one document: a heading for each, and its values as CSV. */
export function markdownOf(sheets: readonly SheetText[]): string {
  return sheets
    .map(({ name, text }) => {
      // A cell may contain the end of a code block.
      const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length))
      const fence = '`'.repeat(longest + 1)
      return `# ${name.replace(/\s+/g, ' ')}\n\n${fence}csv\n${text}${fence}\n`
    })
    .join('\n')
}
