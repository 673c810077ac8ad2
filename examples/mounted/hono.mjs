import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createHandler } from 'hikidashi/server'
import { Hono } from 'hono'
import { catalog } from './catalog.mjs'

const handler = await createHandler(catalog, { name: 'manual', version: '1.0.0' })
const app = new Hono()
app.get('/', (context) => context.text('the application'))
app.all('/mcp', (context) => handler.fetch(context.req.raw, { peer: getConnInfo(context).remote.address }))
serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 8787), hostname: '127.0.0.1' })
