import { server, startCodex } from './codex-app.ts'
import { startModel, type ToolCall } from './codex-model.ts'
import { askUntil, documentsFound, documentsOfTool, expand, refusal, runSession, searchUri } from './session.ts'
import type { Step } from './steps.ts'

/**
 * A content in an answer of Codex. The session below lists, reads and calls through the app server of Codex. A fake model then calls
 * the tools that Codex gives to models.
 */
interface Content {
  readonly text?: string
  readonly blob?: string
}

interface Status {
  readonly name: string
  readonly resources: readonly { readonly uri: string }[]
  readonly resourceTemplates: readonly { readonly uriTemplate: string }[]
}

await runSession(async ({ plan, step, leaveOut }) => {
  const { uris, word, expanded } = plan
  const model = await startModel()
  const codex = await startCodex(plan, model.url)
  const { thread } = await codex.call<{ readonly thread: { readonly id: string } }>('thread/start', {
    cwd: plan.home,
    ephemeral: true,
  })
  const threadId = thread.id
  await codex.notified('mcpServer/startupStatus/updated', ({ status }) => status === 'ready')
  const status = async () => {
    const { data } = await codex.call<{ readonly data: readonly Status[] }>('mcpServerStatus/list', { threadId })
    return data.find(({ name }) => name === server)
  }
  const content = async (uri: string) => {
    const params = { server, threadId, uri }
    return (await codex.call<{ readonly contents: readonly Content[] }>('mcpServer/resource/read', params)).contents[0]
  }
  await step('list', async () => (await status())?.resources.map(({ uri }) => uri))
  await step('templates', async () => (await status())?.resourceTemplates.map(({ uriTemplate }) => uriTemplate))
  await step('text', async () => (await content(uris.text))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('absent', () => refusal(content(uris.absent)))
  await step('searchTool', async () => {
    const params = { server, threadId, tool: 'search_resources', arguments: { query: word } }
    return askUntil(
      async () => documentsOfTool(await codex.call('mcpServer/tool/call', params)),
      (found) => found.length > 0,
    )
  })

  const read = (uri: string): ToolCall => ({ name: 'read_mcp_resource', arguments: { server, uri } })
  model.plan([
    { name: 'list_mcp_resources', arguments: { server } },
    { name: 'list_mcp_resource_templates', arguments: { server } },
    read(uris.japanese),
    read(expand(expanded)),
    read(searchUri(plan)),
    { name: 'search_resources', namespace: `mcp__${server}`, arguments: { query: word } },
  ])
  await codex.call('turn/start', { threadId, input: [{ type: 'text', text: 'Read.' }] })
  await codex.notified('turn/completed', () => true)
  const [listed = '', templates = '', japanese = '', module = '', found = '', tool = ''] = model.outputs()
  const textIn = (output: string) =>
    (JSON.parse(output) as { readonly contents: readonly Content[] }).contents[0]?.text ?? ''
  // Codex cuts the middle out of the lists that it shows to the model, so they are not valid JSON.
  const shown = [
    [listed, '"uri":"'],
    [templates, plan.completion.template],
    [tool, word],
  ] as const
  const missing = shown.find(([output, part]) => !output.includes(part))
  if (missing !== undefined) throw new Error(`the model was not shown ${missing[1]}: ${missing[0].slice(0, 300)}`)
  await step('japanese', async () => textIn(japanese))
  await step('expanded', async () => textIn(module))
  await step('searchTemplate', async () => documentsFound(textIn(found)))

  const offers = [...(await codex.methods()), ...model.offered()]
  for (const left of ['subscribe', 'completion', 'prompts', 'prompt'] satisfies Step[]) leaveOut(left, offers)
  codex.close()
  model.close()
})
