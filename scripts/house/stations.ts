/** `npx tsx scripts/house/stations.ts`: the files that run for one small read over HTTP, as JSON. */
import { traceRead } from './read-path.ts'

process.stdout.write(`${JSON.stringify(await traceRead())}\n`)
