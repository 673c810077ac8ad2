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
 * The members of the library `mcporter` that its session uses. The package declares them in `dist/runtime.d.ts`. The session uses the
 * client of `connect` for everything that the runtime has no method for.
 */
interface Runtime {
  listResources(
    server: string,
    params?: { readonly cursor?: string },
  ): Promise<{ readonly resources: readonly { readonly uri: string }[]; readonly nextCursor?: string }>
  readResource(
    server: string,
    uri: string,
  ): Promise<{ readonly contents: readonly { readonly text?: string; readonly blob?: string }[] }>
  callTool(server: string, tool: string, options: { readonly args: object }): Promise<unknown>
  connect(server: string): Promise<{ readonly client: Client }>
  close(): Promise<void>
}

interface Client {
  fallbackNotificationHandler?: (notification: {
    readonly method: string
    readonly params?: { readonly uri?: string }
  }) => Promise<void>
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly { readonly uriTemplate: string }[] }>
  complete(params: object): Promise<{ readonly completion: { readonly values: readonly string[] } }>
  subscribeResource(params: { readonly uri: string }): Promise<unknown>
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>
  getPrompt(params: object): Promise<{ readonly messages: readonly { readonly content: { readonly text?: string } }[] }>
}

const server = 'shop'

async function start({ transport, command, args, url, home }: Plan): Promise<Runtime> {
  const main: string = 'mcporter'
  const { createRuntime } = (await import(main)) as { createRuntime(options: object): Promise<Runtime> }
  const target =
    transport === 'http' ? { kind: 'http', url: new URL(url) } : { kind: 'stdio', command, args, cwd: home }
  return createRuntime({ servers: [{ name: server, command: target }], rootDir: home })
}

await runSession(async ({ plan, step }) => {
  const runtime = await start(plan)
  // The runtime reconnects after an error and closes the previous client, so the session gets the client again for each use.
  const client = async () => (await runtime.connect(server)).client
  const { uris, word, completion, prompt, watched } = plan
  const content = async (uri: string) => (await runtime.readResource(server, uri)).contents[0]
  await step('list', async () => {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await runtime.listResources(server, cursor === undefined ? {} : { cursor })
      found.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return found
  })
  await step('templates', async () =>
    (await (await client()).listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  )
  await step('text', async () => (await content(uris.text))?.text)
  await step('japanese', async () => (await content(uris.japanese))?.text)
  await step('blob', async () => (await content(uris.blob))?.blob)
  await step('expanded', async () => (await content(expand(plan.expanded)))?.text)
  await step('absent', () => refusal(runtime.readResource(server, uris.absent)))
  await step('searchTool', async () => {
    const search = () => runtime.callTool(server, 'search_resources', { args: { query: word } })
    return askUntil(
      async () => documentsOfTool(await search()),
      (found) => found.length > 0,
    )
  })
  await step('searchTemplate', async () => documentsFound((await content(searchUri(plan)))?.text))
  await step('subscribe', async () => {
    const updated = deferred<string>()
    const connected = await client()
    connected.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === 'notifications/resources/updated') updated.resolve(params?.uri ?? '')
    }
    await connected.subscribeResource({ uri: watched.uri })
    return changeWatched(plan, updated.promise)
  })
  await step('completion', async () => {
    const { template, name, value } = completion
    const ref = { type: 'ref/resource', uri: template }
    return (await (await client()).complete({ ref, argument: { name, value } })).completion.values
  })
  await step('prompts', async () => (await (await client()).listPrompts()).prompts.map(({ name }) => name))
  await step('prompt', async () => (await (await client()).getPrompt(prompt)).messages[0]?.content.text)
  await runtime.close()
})
