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

/** The members of a session of `mcp-use` that are used here. The package declares them in `dist/src/session.d.ts`. */
interface Session {
  on(event: 'notification', handler: (notification: Notification) => void): void
  listAllResources(): Promise<{ readonly resources: readonly { readonly uri: string }[] }>
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly { readonly uriTemplate: string }[] }>
  readResource(
    uri: string,
  ): Promise<{ readonly contents: readonly { readonly text?: string; readonly blob?: string }[] }>
  callTool(name: string, args: object): Promise<unknown>
  complete(params: object): Promise<{ readonly completion: { readonly values: readonly string[] } }>
  subscribeToResource(uri: string): Promise<unknown>
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>
  getPrompt(
    name: string,
    args: object,
  ): Promise<{ readonly messages: readonly { readonly content: { readonly text?: string } }[] }>
}

interface Notification {
  readonly method: string
  readonly params?: { readonly uri?: string }
}

interface Client {
  createSession(name: string): Promise<Session>
  close(): Promise<void>
}

async function connect({ transport, command, args, url }: Plan): Promise<Client> {
  const main: string = 'mcp-use/client'
  const { MCPClient } = (await import(main)) as { MCPClient: new (config: object) => Client }
  return new MCPClient({ mcpServers: { shop: transport === 'http' ? { url } : { command, args } } })
}

await runSession(async ({ plan, step }) => {
  const client = await connect(plan)
  const session = await client.createSession('shop')
  const { uris, word, completion, prompt, watched } = plan
  const content = async (uri: string) => (await session.readResource(uri)).contents[0]
  await step('list', async () => (await session.listAllResources()).resources.map(({ uri }) => uri))
  await step('templates', async () =>
    (await session.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  )
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(session.readResource(uris.absent)))
  await step('searchTool', async () => {
    const search = () => session.callTool('search_resources', { query: word })
    return askUntil(
      async () => documentsOfTool(await search()),
      (found) => found.length > 0,
    )
  })
  await step('searchTemplate', async () => documentsFound((await content(searchUri(plan)))?.text))
  await step('subscribe', async () => {
    const updated = deferred<string>()
    session.on('notification', ({ method, params }) => {
      if (method === 'notifications/resources/updated') updated.resolve(params?.uri ?? '')
    })
    await session.subscribeToResource(watched.uri)
    return changeWatched(plan, updated.promise)
  })
  await step('completion', async () => {
    const { template, name, value } = completion
    const ref = { type: 'ref/resource', uri: template }
    return (await session.complete({ ref, argument: { name, value } })).completion.values
  })
  await step('prompts', async () => (await session.listPrompts()).prompts.map(({ name }) => name))
  await step('prompt', async () => (await session.getPrompt(prompt.name, prompt.arguments)).messages[0]?.content.text)
  await client.close()
})
