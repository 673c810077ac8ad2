import {
  askUntil,
  changeWatched,
  deferred,
  documentsFound,
  documentsOfTool,
  expand,
  refusal,
  runSession,
  searchUri,
} from './session.ts'
import type { Plan } from './steps.ts'

/**
 * The members of `@langchain/mcp-adapters` that its session uses. The package declares them in `dist/client.d.ts`. Its `listResources`
 * requests only the first page, so the session uses the client of `getClient` for the list and for everything that has no method here.
 */
interface Adapters {
  listResourceTemplates(server: string): Promise<Readonly<Record<string, readonly { readonly uriTemplate: string }[]>>>
  readResource(server: string, uri: string): Promise<readonly { readonly text?: string; readonly blob?: string }[]>
  getTools(server: string): Promise<readonly Tool[]>
  getClient(server: string): Promise<Client | undefined>
  close(): Promise<void>
}

interface Tool {
  readonly name: string
  invoke(call: object): Promise<{ readonly artifact?: unknown; readonly content: unknown }>
}

interface Client {
  listResources(params?: { readonly cursor: string }): Promise<{
    readonly resources: readonly { readonly uri: string }[]
    readonly nextCursor?: string
  }>
  complete(params: object): Promise<{ readonly completion: { readonly values: readonly string[] } }>
  subscribeResource(params: { readonly uri: string }): Promise<unknown>
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>
  getPrompt(params: object): Promise<{ readonly messages: readonly { readonly content: { readonly text?: string } }[] }>
}

const server = 'shop'
const updated = deferred<string>()

async function connect({ transport, command, args, url }: Plan): Promise<Adapters> {
  const main: string = '@langchain/mcp-adapters'
  const { MultiServerMCPClient } = (await import(main)) as { MultiServerMCPClient: new (config: object) => Adapters }
  return new MultiServerMCPClient({
    mcpServers: {
      [server]: transport === 'http' ? { transport: 'http', url } : { transport: 'stdio', command, args },
    },
    onResourcesUpdated: ({ uri }: { readonly uri: string }) => updated.resolve(uri),
  })
}

await runSession(async ({ plan, step }) => {
  const adapters = await connect(plan)
  const client = await adapters.getClient(server)
  if (client === undefined) throw new Error('it did not connect')
  const { uris, word, completion, prompt, watched } = plan
  const content = async (uri: string) => (await adapters.readResource(server, uri))[0]
  await step('list', async () => {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await client.listResources(cursor === undefined ? undefined : { cursor })
      found.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return found
  })
  await step('templates', async () =>
    (await adapters.listResourceTemplates(server))[server]?.map(({ uriTemplate }) => uriTemplate),
  )
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(adapters.readResource(server, uris.absent)))
  await step('searchTool', async () => {
    const tool = (await adapters.getTools(server)).find(({ name }) => name === 'search_resources')
    const search = async () => {
      const call = { type: 'tool_call', id: 'call', name: 'search_resources', args: { query: word } }
      const artifacts = (await tool?.invoke(call))?.artifact as readonly { readonly data?: unknown }[] | undefined
      return documentsOfTool({ structuredContent: artifacts?.find(({ data }) => data !== undefined)?.data })
    }
    return askUntil(search, (found) => found.length > 0)
  })
  await step('searchTemplate', async () => documentsFound((await content(searchUri(plan)))?.text))
  await step('subscribe', async () => {
    await client.subscribeResource({ uri: watched.uri })
    return changeWatched(plan, updated.promise)
  })
  await step('completion', async () => {
    const { template, name, value } = completion
    const ref = { type: 'ref/resource', uri: template }
    return (await client.complete({ ref, argument: { name, value } })).completion.values
  })
  await step('prompts', async () => (await client.listPrompts()).prompts.map(({ name }) => name))
  await step('prompt', async () => (await client.getPrompt(prompt)).messages[0]?.content.text)
  await adapters.close()
})
