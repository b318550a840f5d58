// Gives the host the name web1: loggers write it, and it shall not be that of the machine. A
// program imports it before its logger.
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'

os.hostname = () => 'web1'
syncBuiltinESMExports()
