import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { askUntil, documentsFound, expand, refusal, runSession, searchUri } from './session.ts'
import type { Step } from './steps.ts'

/** Path of the command `mcporter`. Each step of this session is a separate process, which connects anew. */
const command = fileURLToPath(import.meta.resolve('mcporter/cli'))

const run = promisify(execFile)

await runSession(async ({ plan, step, leaveOut }) => {
  const { home, uris, word } = plan
  const config = join(home, 'mcporter.json')
  const server = plan.transport === 'http' ? { url: plan.url } : { command: plan.command, args: plan.args }
  // With no imports, mcporter reads no settings of editors.
  await writeFile(config, JSON.stringify({ imports: [], mcpServers: { shop: server } }))
  const mcporter = async (...args: readonly string[]) => {
    const options = { maxBuffer: 64 * 1024 * 1024 }
    return run(process.execPath, [command, '--config', config, ...args], options)
  }
  const asked = async (...args: readonly string[]) => JSON.parse((await mcporter(...args)).stdout) as unknown
  const content = async (uri: string) => {
    const { contents } = (await asked('resource', 'shop', uri, '--json')) as {
      readonly contents: readonly { readonly text?: string; readonly blob?: string }[]
    }
    return contents[0]
  }
  await step('list', async () => {
    const { resources } = (await asked('resource', 'shop', '--json')) as {
      readonly resources: readonly { readonly uri: string }[]
    }
    return resources.map(({ uri }) => uri)
  })
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(mcporter('resource', 'shop', uris.absent)))
  await step('searchTool', async () => {
    const search = async () =>
      (await asked('call', 'shop.search_resources', `query=${word}`, '--output', 'json')) as {
        readonly results: readonly { readonly document: string }[]
      }
    return askUntil(
      async () => (await search()).results.map(({ document }) => document),
      (found) => found.length > 0,
    )
  })
  await step('searchTemplate', async () => {
    // mcporter prints only the text of a resource that is JSON.
    const search = async () =>
      documentsFound(JSON.stringify(await asked('resource', 'shop', searchUri(plan), '--json')))
    return askUntil(search, (found) => found.length > 0)
  })
  const help = await Promise.all([[], ['resource'], ['call'], ['list']].map((words) => mcporter(...words, '--help')))
  const offers = help.flatMap(({ stdout, stderr }) => `${stdout}\n${stderr}`.split('\n'))
  for (const left of ['templates', 'subscribe', 'completion', 'prompts', 'prompt'] satisfies Step[])
    leaveOut(left, offers)
})
