/**
 * `npx tsx scripts/house/stations.ts`: prints the files that run for one small read over HTTP, as JSON.
 * With `--names`: prints the functions that run, one per line, with a `+` before those that a second read of the same file runs too.
 */
import { traceRead } from './read-path.ts'

const { again, ...walked } = await traceRead()
if (process.argv.includes('--names')) {
  const lines = walked.calls.map((call) => `${again.calls.includes(call) ? '+' : ' '} ${call}\n`)
  process.stdout.write(
    `${lines.join('')}${walked.functions} functions in ${walked.files.length} files; ${again.functions} in ${again.files.length} if it is read again\n`,
  )
} else {
  process.stdout.write(`${JSON.stringify({ ...walked, again })}\n`)
}
