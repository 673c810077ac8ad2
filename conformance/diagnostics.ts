import type { Tool } from '../src/core/tool.ts'
import { isObject, ProtocolError, protocolKeys, wireErrorCodes } from '../src/server/messages/messages.ts'
import type { ExtraMethod, MethodCall } from '../src/server/protocol/method.ts'

/**
 * Methods that the scenarios on lifecycle and completion need besides resources: a prompt with an argument to complete, and tools that
 * test capabilities, streams and logs. They do not test the server's own tools or prompts.
 */
export const diagnostics: Readonly<Record<string, ExtraMethod>> = {
  'tools/list': async (_, call) => ({
    tools: [
      ...tools.map((name) => ({ name, description: 'For the suite.', inputSchema: { type: 'object' } })),
      ...(await toolsOfMounts(call)).map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    ],
  }),

  'tools/call': async ({ name, arguments: given = {}, _meta }, call) => {
    const { log, headersFault, signal } = call
    const mounted = (await toolsOfMounts(call)).find((tool) => tool.name === name)
    if (mounted !== undefined && isObject(given)) {
      const fault = headersFault?.(mounted.inputSchema, given)
      if (fault !== undefined) throw new ProtocolError(fault.code, fault.message)
      const { blocks } = await mounted.call(given, { principal: { id: 'suite', roles: [] }, signal })
      return { content: blocks }
    }
    const declared = isObject(_meta) ? _meta[protocolKeys.clientCapabilities] : undefined
    const samples = isObject(declared) && 'sampling' in declared
    if (name === 'test_missing_capability' && !samples)
      throw new ProtocolError(
        wireErrorCodes.missingCapability,
        'The client does not declare the capability sampling.',
        {
          requiredCapabilities: { sampling: {} },
        },
      )
    // The server sends this line only to a client that has requested logs.
    if (name === 'test_logging_tool') log('info', 'a line of the log')
    return { content: [{ type: 'text', text: `${String(name)} was called` }] }
  },

  'prompts/list': async () => ({
    prompts: [{ name: 'test_prompt_with_arguments', description: 'For the suite.', arguments: [{ name: 'arg1' }] }],
  }),

  'prompts/get': async (params) => {
    const { arg1 = '' } = (params.arguments ?? {}) as { readonly arg1?: string }
    return { messages: [{ role: 'user', content: { type: 'text', text: `The argument is ${arg1}.` } }] }
  },

  'completion/complete': async ({ argument }) => {
    const { value = '' } = (argument ?? {}) as { readonly value?: string }
    const values = ['testValue1', 'testValue2'].filter((known) => known.startsWith(value))
    return { completion: { values, total: values.length, hasMore: false } }
  },
}

async function toolsOfMounts({ view, signal }: MethodCall): Promise<readonly Tool[]> {
  return (await view.tools?.list(new Set(tools), { signal }))?.tools ?? []
}

const tools = ['test_missing_capability', 'test_streaming_elicitation', 'test_logging_tool']
