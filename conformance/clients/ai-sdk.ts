import {
  askUntil,
  documentsFound,
  documentsOfTool,
  expand,
  membersOf,
  refusal,
  runSession,
  searchUri,
} from './session.ts'
import type { Plan } from './steps.ts'

/** The members of `@ai-sdk/mcp` that its session uses. The package declares them in `dist/index.d.ts`. */
interface Client {
  listResources(options?: { readonly params?: { readonly cursor: string } }): Promise<{
    readonly resources: readonly { readonly uri: string }[]
    readonly nextCursor?: string
  }>
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly { readonly uriTemplate: string }[] }>
  readResource(args: {
    readonly uri: string
  }): Promise<{ readonly contents: readonly { readonly text?: string; readonly blob?: string }[] }>
  callTool(args: { readonly name: string; readonly arguments: object }): Promise<unknown>
  complete(params: object): Promise<{ readonly completion: { readonly values: readonly string[] } }>
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>
  getPrompt(args: object): Promise<{ readonly messages: readonly { readonly content: { readonly text?: string } }[] }>
  close(): Promise<void>
}

async function connect({ transport, command, args, url }: Plan): Promise<Client> {
  const main: string = '@ai-sdk/mcp'
  const stdio: string = '@ai-sdk/mcp/mcp-stdio'
  const { createMCPClient } = (await import(main)) as { createMCPClient(config: object): Promise<Client> }
  const { StdioMCPTransport } = (await import(stdio)) as { StdioMCPTransport: new (config: object) => object }
  return createMCPClient({
    transport: transport === 'http' ? { type: 'http', url } : new StdioMCPTransport({ command, args }),
  })
}

await runSession(async ({ plan, step, leaveOut }) => {
  const client = await connect(plan)
  const { uris, word, completion, prompt } = plan
  const content = async (uri: string) => (await client.readResource({ uri })).contents[0]
  await step('list', async () => {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await client.listResources(cursor === undefined ? {} : { params: { cursor } })
      found.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return found
  })
  await step('templates', async () =>
    (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  )
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(client.readResource({ uri: uris.absent })))
  await step('searchTool', async () => {
    const search = () => client.callTool({ name: 'search_resources', arguments: { query: word } })
    return askUntil(
      async () => documentsOfTool(await search()),
      (found) => found.length > 0,
    )
  })
  await step('searchTemplate', async () => documentsFound((await content(searchUri(plan)))?.text))
  await step('completion', async () => {
    const { template, name, value } = completion
    const ref = { type: 'ref/resource', uri: template }
    return (await client.complete({ ref, argument: { name, value } })).completion.values
  })
  await step('prompts', async () => (await client.listPrompts()).prompts.map(({ name }) => name))
  await step('prompt', async () => (await client.getPrompt(prompt)).messages[0]?.content.text)
  leaveOut('subscribe', membersOf(client))
  await client.close()
})
