/** Writes `deploy/docker-catalog/tools.json` from the tools that the built command lists: `npm run catalog`. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describeTools } from './docker-tools.ts'

const command = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const fixture = fileURLToPath(new URL('../docs', import.meta.url))
const tools = await describeTools([command, 'serve', fixture, '--stdio'])
await writeFile(new URL('../deploy/docker-catalog/tools.json', import.meta.url), `${JSON.stringify(tools, null, 2)}\n`)
