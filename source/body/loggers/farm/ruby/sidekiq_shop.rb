# The shop's jobs for Sidekiq.
require "sidekiq"

Sidekiq.configure_server do |config|
  config.log_formatter = Sidekiq::Logger::Formatters::JSON.new if ENV["JSON"] == "-json"
end

class PlaceOrder
  include Sidekiq::Worker
  sidekiq_options retry: 3

  def perform(order, cents)
    logger.warn("article of order #{order} is nearly sold out")
    raise ArgumentError, "negative amount: #{cents}" if cents < 0
  end
end
