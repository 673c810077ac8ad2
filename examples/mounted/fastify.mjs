import Fastify from 'fastify'
import { createHandler } from 'hikidashi/server'
import { catalog } from './catalog.mjs'

const handler = await createHandler(catalog, { name: 'manual', version: '1.0.0' })
const app = Fastify()
app.get('/', () => 'the application')
app.all('/mcp', (request, reply) => {
  reply.hijack()
  return handler.node(request.raw, reply.raw, { body: request.body })
})
await app.listen({ port: Number(process.env.PORT ?? 8787), host: '127.0.0.1' })
