import express from 'express'
import { createHandler } from 'hikidashi/server'
import { catalog } from './catalog.mjs'

const handler = await createHandler(catalog, { name: 'manual', version: '1.0.0' })
const app = express()
app.use(express.json())
app.get('/', (_request, response) => response.send('the application'))
app.all('/mcp', handler.node)
app.listen(Number(process.env.PORT ?? 8787), '127.0.0.1')
