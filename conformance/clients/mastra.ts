import {
  askUntil,
  changeWatched,
  deferred,
  documentsFound,
  expand,
  membersOf,
  refusal,
  runSession,
  searchUri,
} from './session.ts'
import type { Plan } from './steps.ts'

/** The members of `@mastra/mcp` that its session uses. The package declares them in `dist/client/configuration.d.ts`. */
interface Client {
  readonly resources: {
    list(): Promise<Readonly<Record<string, readonly { readonly uri: string }[]>>>
    templates(): Promise<Readonly<Record<string, readonly { readonly uriTemplate: string }[]>>>
    read(
      server: string,
      uri: string,
    ): Promise<{ readonly contents: readonly { readonly text?: string; readonly blob?: string }[] }>
    subscribe(server: string, uri: string): Promise<void>
    onUpdated(server: string, handler: (params: { readonly uri: string }) => void): Promise<void>
  }
  readonly prompts: {
    list(): Promise<Readonly<Record<string, readonly { readonly name: string }[]>>>
    get(args: object): Promise<{ readonly messages: readonly { readonly content: { readonly text?: string } }[] }>
  }
  listToolsets(): Promise<
    Readonly<Record<string, Readonly<Record<string, { execute(input: object, context: object): Promise<unknown> }>>>>
  >
  disconnect(): Promise<void>
}

const server = 'shop'

async function connect({ transport, command, args, url }: Plan): Promise<Client> {
  const main: string = '@mastra/mcp'
  const { MCPClient } = (await import(main)) as { MCPClient: new (options: object) => Client }
  const timeout = 60_000
  const definition = transport === 'http' ? { url: new URL(url), connectTimeout: timeout } : { command, args }
  return new MCPClient({ servers: { [server]: { ...definition, timeout } }, timeout })
}

await runSession(async ({ plan, step, leaveOut }) => {
  const client = await connect(plan)
  const { uris, word, prompt, watched } = plan
  const content = async (uri: string) => (await client.resources.read(server, uri)).contents[0]
  await step('list', async () => (await client.resources.list())[server]?.map(({ uri }) => uri))
  await step('templates', async () =>
    (await client.resources.templates())[server]?.map(({ uriTemplate }) => uriTemplate),
  )
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(client.resources.read(server, uris.absent)))
  await step('searchTool', async () => {
    const tool = (await client.listToolsets())[server]?.search_resources
    const search = async () =>
      (await tool?.execute({ query: word }, {})) as { readonly results: readonly { readonly document: string }[] }
    // The tool returns only the structured content.
    return askUntil(
      async () => (await search()).results.map(({ document }) => document),
      (found) => found.length > 0,
    )
  })
  await step('searchTemplate', async () => documentsFound((await content(searchUri(plan)))?.text))
  await step('subscribe', async () => {
    const updated = deferred<string>()
    await client.resources.onUpdated(server, ({ uri }) => updated.resolve(uri))
    await client.resources.subscribe(server, watched.uri)
    return changeWatched(plan, updated.promise)
  })
  leaveOut('completion', [...membersOf(client), ...membersOf(client.resources), ...membersOf(client.prompts)])
  await step('prompts', async () => (await client.prompts.list())[server]?.map(({ name }) => name))
  await step('prompt', async () => {
    const { name, arguments: args } = prompt
    return (await client.prompts.get({ serverName: server, name, args })).messages[0]?.content.text
  })
  await client.disconnect()
})
