import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A tool call that the fake model requests from Codex. `namespace` is that of the tools of an MCP server. */
export interface ToolCall {
  readonly name: string
  readonly namespace?: string
  readonly arguments: object
}

/**
 * A fake model: it serves the Responses API on a free port of this machine. It answers each request with the next planned call, and then
 * with a message. It stores the outputs of the tools that Codex reports.
 */
export interface Model {
  readonly url: string
  /** Returns the names of the tools that the last request offered. A tool in a namespace is `NAMESPACE/NAME`. */
  readonly offered: () => readonly string[]
  /** Plans the calls of the next turn. */
  plan(calls: readonly ToolCall[]): void
  /** Returns the outputs of the calls that were planned last, in order. */
  readonly outputs: () => readonly string[]
  close(): void
}

interface Request {
  readonly input: readonly { readonly type: string; readonly call_id?: string; readonly output?: unknown }[]
  readonly tools: readonly {
    readonly name?: string
    readonly type: string
    readonly tools?: readonly { readonly name: string }[]
  }[]
}

export async function startModel(): Promise<Model> {
  let planned: readonly ToolCall[] = []
  let offered: readonly string[] = []
  let made = 0
  const outputs = new Map<string, string>()
  /** Number of the first call of this turn. Call ids are unique over all turns, because Codex sends the whole conversation each time. */
  let first = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const { input, tools } = JSON.parse(body) as Request
    for (const { type, call_id: id, output } of input)
      if (type === 'function_call_output' && id !== undefined) outputs.set(id, textOf(output))
    offered = tools.flatMap((tool) =>
      tool.tools === undefined ? (tool.name ?? tool.type) : tool.tools.map(({ name }) => `${tool.name}/${name}`),
    )
    const call = planned[made]
    const id = `call_${first + made}`
    if (call !== undefined) made++
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.end(answerWith(call, id))
    return undefined
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    offered: () => offered,
    plan: (calls) => {
      first += made
      made = 0
      planned = calls
    },
    outputs: () => planned.map((_, index) => outputs.get(`call_${first + index}`) ?? ''),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Returns a whole answer of the Responses API, as server-sent events. */
function answerWith(call: ToolCall | undefined, id: string): string {
  const item =
    call === undefined
      ? { type: 'message', id: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
      : { type: 'function_call', id: `item_${id}`, call_id: id, ...call, arguments: JSON.stringify(call.arguments) }
  const usage = {
    input_tokens: 1,
    input_tokens_details: null,
    output_tokens: 1,
    output_tokens_details: null,
    total_tokens: 2,
  }
  return [
    { type: 'response.created', response: { id } },
    { type: 'response.output_item.done', item },
    { type: 'response.completed', response: { id, usage } },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('')
}

/** Returns the text of a tool's output, which is a string or a list of parts. */
function textOf(output: unknown): string {
  if (typeof output === 'string') return output
  if (!Array.isArray(output)) return JSON.stringify(output)
  return output.map((part: { readonly text?: string }) => part.text ?? '').join('')
}
