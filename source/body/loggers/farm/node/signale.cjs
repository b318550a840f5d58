const signale = require('signale')

signale.info('order placed')
signale.success('order packed')
signale.warn('stock is low')
signale.error('payment failed')
signale.fatal(new Error('no till is open'))
