# rails_shop.rb plain|lograge: a Rails application with the logger of its production environment.
require "action_controller/railtie"
require "lograge" if ARGV[0] == "lograge"

class Shop < Rails::Application
  config.root = __dir__
  config.eager_load = false
  config.secret_key_base = "none"
  config.hosts.clear
  config.log_level = :info
  config.log_tags = [:request_id]
  logger = ActiveSupport::Logger.new($stdout)
  logger.formatter = Logger::Formatter.new
  config.logger = ActiveSupport::TaggedLogging.new(logger)
  config.lograge.enabled = true if ARGV[0] == "lograge"
end

Shop.initialize!
Shop.routes.draw { resources :orders, only: :show }
orders = ARGV[0] == "lograge" ? [1001, 1002] : [1002]
orders.each { |order| Rack::MockRequest.new(Shop).get("/orders/#{order}", "REMOTE_ADDR" => "192.0.2.7") }
