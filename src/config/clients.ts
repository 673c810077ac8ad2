import * as z from '../schema/builder.ts'
import { globs, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'

const names = z.union([text, z.array(text).min(1)], {
  error: refusal(
    'This is not the name of a client.',
    'Write one such as "Zed", or an array of them; "*" stands for anything.',
  ),
})

const profile = z.strictObject({
  name: names.describe(
    'The name that the client sends, such as "Zed" or "cursor-*": "*" stands for any text, and case makes no difference.',
  ),
  version: names.exactOptional().describe('The version that the client sends, such as "1.*". By default any.'),
  tools: z
    .union([z.boolean(), z.literal('chatgpt')], {
      error: refusal('This is not a choice of tools.', 'Write true, false or "chatgpt".'),
    })
    .exactOptional()
    .describe(
      'true: the client gets the tools that read resources; "chatgpt": it gets only the tools search and fetch. By default as `clients.tools`.',
    ),
  list: z
    .strictObject({
      mounts: z
        .array(text)
        .min(1)
        .exactOptional()
        .describe('The addresses of the mounts that the client sees. By default all.'),
      match: globs.exactOptional().describe('Globs of the paths that the client sees. By default all.'),
      most: z
        .union([z.int().min(1), z.literal('all')], {
          error: refusal('This is not a number of resources.', 'Write a whole number, at least 1, or "all".'),
        })
        .exactOptional()
        .describe(
          'Maximum number of listed resources, the most important first; "all" ignores the known limit of a host. By default the known limit of the host, else all.',
        ),
    })
    .exactOptional()
    .describe(
      'The resources that the client sees in lists, directories and completions. This is not an access rule: the client can still read the other resources by URI.',
    ),
})

export const clients = z.strictObject({
  tools: z
    .enum(['auto', 'on', 'off', 'chatgpt'])
    .exactOptional()
    .describe(
      'Which clients get the tools list_resources, browse_directory, read_resource, search_resources, browse and assemble_context. "on": all clients; "off": only the explorer; "auto": all clients, except those whose model is known to list, read and search resources by itself (ChatGPT also gets search and fetch); "chatgpt": all clients get the tools search and fetch instead, as ChatGPT connectors require. By default "auto".',
    ),
  profiles: z
    .array(profile)
    .exactOptional()
    .describe('Settings for some clients, by the name that they send. The first match applies.'),
})

export type ClientsConfig = z.output<typeof clients>
